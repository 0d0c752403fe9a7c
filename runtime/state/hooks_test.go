package state

import (
	"path/filepath"
	"testing"
)

// TestHooks checks that a mark counts while its process holds it. The next process that takes the pod's lock removes
// the mark of a killed process.
func TestHooks(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	if running := pod.Hooks().Running(); len(running) > 0 {
		t.Errorf("of a pod without a directory: %v", running)
	}
	end, err := pod.Hooks().Begin("c1")
	if err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(pod.Dir(), hookPrefix+"c0")
	write(t, killed, "")
	if running := pod.Hooks().Running(); len(running) != 1 || !running["c1"] {
		t.Errorf("while the hook runs: %v", running)
	}
	if err = pod.Checkpoint().Write(&Checkpoint{}); err != nil || !pod.Hooks().Running()["c1"] {
		t.Errorf("the checkpoint is written meanwhile: %v, %v", pod.Hooks().Running(), err)
	}
	if err = end(); err != nil || len(pod.Hooks().Running()) > 0 {
		t.Errorf("after its end: %v, %v", pod.Hooks().Running(), err)
	}
	lock, err := pod.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantGone(t, killed)
	write(t, killed, "")
	if err = pod.Checkpoint().Remove(); err != nil {
		t.Errorf("a pod is removed with the mark of a killed process: %v", err)
	}
	wantGone(t, pod.Dir())
	if err = lock.Unlock(); err != nil {
		t.Error(err)
	}
}
