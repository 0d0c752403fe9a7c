package agent

import (
	"testing"
	"time"
)

// TestPulse checks that the loop is stalled when one turn takes minutes, and not while it waits.
func TestPulse(t *testing.T) {
	var p pulse
	now := time.Unix(1_000_000, 0)
	for _, step := range []struct {
		do      func()
		after   time.Duration
		stalled bool
	}{
		{func() {}, time.Hour, false},
		{func() { p.work(now) }, stalledAfter - time.Second, false},
		{func() {}, time.Second, true},
		{p.rest, 0, false},
		{func() {}, time.Hour, false},
		{func() { p.work(now) }, 0, false},
	} {
		step.do()
		now = now.Add(step.after)
		if err := p.check(now); (err != nil) != step.stalled {
			t.Errorf("at %s: %v", now, err)
		}
	}
}

// TestAbandonedTurns checks that only an agent in a turn that began before the end is abandoned. An agent that must
// stop its pods is never abandoned.
func TestAbandonedTurns(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	a := &Agent{loopState: &loopState{}}
	if a.IsStuck(now) {
		t.Error("IsStuck is true for a waiting loop")
	}
	if a.pulse.work(now); a.IsStuck(now) || !a.IsStuck(now.Add(1)) {
		t.Error("IsStuck must be true only for a turn that began before the end")
	}
	if a.settings.StopPods = time.Second; a.IsStuck(now.Add(1)) {
		t.Error("IsStuck is true for an agent that must stop its pods")
	}
}
