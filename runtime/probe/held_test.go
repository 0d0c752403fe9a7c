package probe

import (
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// TestPassMakesPendingChanges checks that a change that came before Hold does not wait for the end of the pass.
// After the pass has ended, a change is written to the checkpoint.
func TestPassMakesPendingChanges(t *testing.T) {
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	p := NewProber(nil, layout, nil, &state.Locker{Layout: layout, Waiting: func(string) {}})
	ref := model.PodRef{Namespace: "default", Name: "web", UID: "web-0000"}
	lock, err := layout.Pod(ref.UID).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var changed *state.Checkpoint
	change := func(j *state.Checkpoint, _ *events.Recorder) bool {
		changed = j
		return false
	}
	done := make(chan error, 1)
	go func() { done <- p.update(t.Context(), ref, change) }()
	for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
		p.held.mu.Lock()
		waiting = len(p.held.waiting)
		p.held.mu.Unlock()
	}
	held, open := &state.Checkpoint{}, true
	release := p.held.Hold(ref.UID, func(change Change) (bool, error) {
		if open {
			change(held, &events.Recorder{})
		}
		return open, nil
	})
	if err := <-done; err != nil || changed != held {
		t.Errorf("the pass has not taken it: %v", err)
	}
	if open = false; lock.Unlock() != nil {
		t.Fatal("the lock cannot be let go of")
	}
	if err := p.update(t.Context(), ref, change); err != nil || changed == held {
		t.Errorf("a pass that has ended has taken it: %v", err)
	}
	if release(); len(p.held.takes)+len(p.held.waiting) > 0 {
		t.Errorf("left are %v and %v", p.held.takes, p.held.waiting)
	}
}
