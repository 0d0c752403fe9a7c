package gc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

func (l *lab) upkeep(most int) []Garbage {
	l.t.Helper()
	found, err := l.Upkeep(l.t.Context(), most)
	if err != nil {
		l.t.Fatal(err)
	}
	return found
}

// attempts returns the attempts of the removed containers by pod.
func attempts(found []Garbage) []string {
	all := []string{}
	for _, g := range found {
		all = append(all, fmt.Sprintf("%s %s %d", g.Kind, g.Pod.Name, g.Attempt))
	}
	slices.Sort(all)
	return all
}

// TestUpkeepLimitsRecords has the cases of the kubelet's TestContainerGC about numbers: the number of records is
// limited, the oldest are removed first, and each container keeps one. Unlike with a kubelet, that one always stays if
// the container does not run, because it has the restart count.
func TestUpkeepLimitsRecords(t *testing.T) {
	l := newLab(t)
	refs, sandboxes := map[string]model.PodRef{}, map[string]string{}
	for _, name := range []string{"one", "two", "idle"} {
		ref := l.remembered(name)
		refs[name], sandboxes[name] = ref, l.sandbox(ref, 0)
		for attempt := range uint32(3) {
			l.ended(ref, sandboxes[name], attempt)
			l.clock.Advance(time.Second)
		}
	}
	for _, name := range []string{"one", "two"} {
		l.container(refs[name], sandboxes[name], 3)
	}
	usual := []string{"Container idle 0", "Container idle 1", "Container one 0", "Container one 1", "Container two 0", "Container two 1"}
	for most, more := range map[int][]string{
		-1: nil, 4: nil, 3: nil, 2: {"Container one 2"}, 1: {"Container one 2", "Container two 2"},
		0: {"Container one 2", "Container two 2"},
	} {
		want := slices.Sorted(slices.Values(slices.Concat(usual, more)))
		if diff := cmp.Diff(want, attempts(l.upkeep(most))); diff != "" {
			t.Errorf("at most %d (-want +got)\n%s", most, diff)
		}
	}
	for _, g := range l.upkeep(0) {
		if err := l.RemoveIfFree(t.Context(), g); err != nil {
			t.Error(g, err)
		}
	}
	if left := l.upkeep(0); len(left) > 0 {
		t.Errorf("after all was removed there is %v", left)
	}
}

// TestUpkeepLeavesSpareOfWhatEnded checks that a spare record stays if the container has exited meanwhile.
func TestUpkeepLeavesSpareOfWhatEnded(t *testing.T) {
	l := newLab(t)
	ref := l.remembered("web")
	s := l.sandbox(ref, 0)
	l.ended(ref, s, 0)
	l.container(ref, s, 1)
	found := l.upkeep(0)
	if len(found) != 1 {
		t.Fatalf("found %v", found)
	}
	l.server.Exit("a", 1)
	// It is garbage now, because there is a newer exited record, but not as a spare record.
	if err := l.RemoveIfFree(t.Context(), found[0]); !errors.Is(err, ErrNeeded) {
		t.Errorf("error %v", err)
	}
}

// TestUpkeepOfDeletedPods checks that logs and events of a deleted pod stay for a day, and that an unknown pod is not
// changed.
func TestUpkeepOfDeletedPods(t *testing.T) {
	l := newLab(t)
	unknown := model.PodRef{Namespace: "default", Name: "unknown", UID: "unknown-uid"}
	l.ended(unknown, l.sandbox(unknown, 0), 0)
	if err := os.MkdirAll(filepath.Join(l.layout.Root, "pods", "unknown-uid", "volumes"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(l.layout.Root, "pods", "gone-uid", "volumes"), 0o750); err != nil {
		t.Fatal(err)
	}
	gone := l.layout.Pod("gone-uid")
	if err := errors.Join(
		gone.Logs("default", "gone").Make("a"),
		gone.Logs("default", "gone").Archive(l.clock.Now()),
		gone.History().Write(&state.History{}),
	); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(gone.History().Path(), l.clock.Now(), l.clock.Now()); err != nil {
		t.Fatal(err)
	}
	l.clock.Advance(23 * time.Hour)
	if diff := cmp.Diff([]GarbageKind{GarbageFiles}, kinds(l.upkeep(-1))); diff != "" {
		t.Errorf("after 23 hours (-want +got)\n%s", diff)
	}
	l.clock.Advance(2 * time.Hour)
	if diff := cmp.Diff([]GarbageKind{GarbageFiles, GarbageLogs, GarbageEvents}, kinds(l.upkeep(-1))); diff != "" {
		t.Errorf("after 25 hours (-want +got)\n%s", diff)
	}
}

// TestRemoveIfFreeSkipsBusyPods checks that a pod that another process works on is skipped.
func TestRemoveIfFreeSkipsBusyPods(t *testing.T) {
	l := newLab(t)
	ref := l.remembered("web")
	s := l.sandbox(ref, 0)
	l.ended(ref, s, 0)
	l.ended(ref, s, 1)
	lock, err := l.layout.Pod(ref.UID).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := l.upkeep(-1)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for _, g := range found {
			if err := l.RemoveIfFree(t.Context(), g); !errors.As(err, new(*filelock.LockedError)) || !time.Now().Equal(began) {
				t.Errorf("error %v after %s", err, time.Since(began))
			}
		}
	})
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}
