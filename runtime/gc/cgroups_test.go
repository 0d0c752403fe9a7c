package gc

import (
	"errors"
	"testing"

	"github.com/podctl/podctl/runtime/cgroup"
)

// TestProcessesOfEndedPodsAreKilled checks that the cgroup of a pod goes with its processes only if the runtime has no
// running sandbox or container of the pod.
func TestProcessesOfEndedPodsAreKilled(t *testing.T) {
	l := newLab(t)
	ref, other := l.remembered("web"), l.remembered("other")
	l.container(other, l.sandbox(other, 0), 0)
	const name = "/kubepods/podu1"
	remove := func() error {
		t.Helper()
		if err := l.groups.Ensure(name, cgroup.Resources{}); err != nil {
			t.Fatal(err)
		}
		l.groups.Occupy(name, 7)
		return l.RemoveCgroup(t.Context(), ref.UID, name)
	}
	id := l.sandbox(ref, 0)
	if err := remove(); err == nil || !l.groups.Exists(name) {
		t.Errorf("while the sandbox runs: %v", err)
	}
	l.container(ref, id, 0)
	if err := l.client.StopSandbox(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	l.server.Exit("a", 0)
	if err := remove(); err != nil || l.groups.Exists(name) {
		t.Errorf("after their end: %v", err)
	}
	injected := errors.New("injected")
	l.groups.Fail(injected)
	if err := l.RemoveCgroup(t.Context(), ref.UID, name); !errors.Is(err, injected) {
		t.Errorf("error %v", err)
	}
}
