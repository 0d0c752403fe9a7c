package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/model"
)

func writeApplied(t *testing.T, l Layout, namespace, name string, uid types.UID) {
	t.Helper()
	if err := l.Pod(uid).Checkpoint().Write(&Checkpoint{
		Memory: model.Memory{Applied: desired(namespace, name, uid), Generation: 1},
	}); err != nil {
		t.Fatal(err)
	}
}

func TestUIDsOfPodsWithCheckpoint(t *testing.T) {
	l := newLayout(t)
	found, err := uids(l)
	if err != nil || len(found) != 0 {
		t.Fatalf("uids without a state directory = %v, %v; want none", found, err)
	}
	writeApplied(t, l, "default", "web", "u2")
	writeApplied(t, l, "default", "db", "u1")
	for _, path := range []string{"u3/etc-hosts", ".hidden/checkpoint.json"} {
		write(t, filepath.Join(l.pods(), path), "")
	}
	write(t, filepath.Join(l.pods(), "file"), "")
	found, err = uids(l)
	if diff := cmp.Diff([]types.UID{"u1", "u2"}, found); diff != "" || err != nil {
		t.Errorf("uids differ (-want +got), error %v:\n%s", err, diff)
	}
}

func TestDamagedCheckpointDoesNotHideOthers(t *testing.T) {
	l := newLayout(t)
	writeApplied(t, l, "default", "web", "u1")
	writeApplied(t, l, "default", "db", "u3")
	write(t, l.Pod("u2").Checkpoint().Path(), "{")
	entries, err := l.Pods().Checkpoints()
	if err != nil || len(entries) != 3 {
		t.Fatalf("Checkpoints = %v, %v; want three entries", entries, err)
	}
	if entries[0].Err != nil || entries[2].Err != nil || entries[2].Checkpoint.Pod.Name != "db" {
		t.Errorf("the sound checkpoints are %+v and %+v", entries[0], entries[2])
	}
	if entries[1].Checkpoint != nil || !errors.Is(entries[1].Err, ErrDamaged) || entries[1].UID != "u2" {
		t.Errorf("the damaged checkpoint is %+v, want an entry with ErrDamaged", entries[1])
	}
}

func TestPodsThatCannotBeListedAreAnError(t *testing.T) {
	l := newLayout(t)
	if err := os.MkdirAll(l.Root, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, l.pods(), "a file where the directory should be")
	for what, list := range map[string]func() error{
		"uids":        func() error { _, err := uids(l); return err },
		"Checkpoints": func() error { _, err := l.Pods().Checkpoints(); return err },
	} {
		if list() == nil {
			t.Errorf("%s succeeded, want an error", what)
		}
	}
}

// TestNotFoundAdvice checks the advice for kubectl's names of other kinds, which are not names of pods.
func TestNotFoundAdvice(t *testing.T) {
	for name, want := range map[string]string{
		"default/web":         "has not applied a pod of that name",
		"default/pods":        "without their kind",
		"default/all":         "this command takes names of pods",
		"default/deployments": "this command takes names of pods",
		"svc/web":             "this command takes names of pods",
		"configmap/site":      "`podctl get configmaps`",
		"default/cm":          "`podctl get configmaps`",
		"default/cm,secret":   "`podctl get configmaps`",
	} {
		if got := (&NotFoundError{Name: name}).Error(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
