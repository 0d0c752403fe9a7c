package agent

import (
	"fmt"
	"sync/atomic"
	"time"
)

// stalledAfter is how long one turn of the loop may take before the agent is reported as stalled. A turn takes
// milliseconds: longer work is done in other goroutines. The kubelet has the same limit (SyncLoopHealthCheck).
const stalledAfter = 5 * time.Minute

// pulse is the start time of the loop's present turn. It is nil while the loop waits.
type pulse struct{ since atomic.Pointer[time.Time] }

func (p *pulse) work(now time.Time) { p.since.Store(&now) }

func (p *pulse) rest() { p.since.Store(nil) }

// check returns an error if the loop is stalled.
func (p *pulse) check(now time.Time) error {
	since := p.since.Load()
	if since == nil || now.Sub(*since) < stalledAfter {
		return nil
	}
	return fmt.Errorf("the agent's loop has been stalled for %s", now.Sub(*since).Round(time.Second))
}

// began reports whether the loop still works on a turn that began before a time.
func (p *pulse) began(before time.Time) bool {
	since := p.since.Load()
	return since != nil && since.Before(before)
}

// IsStuck reports whether the loop is still in a turn that began before since, the time when the agent was asked to
// end. The caller must wait for an agent that stops its pods. It may abandon any other agent: pods keep running, and
// the next agent continues from the stored state.
func (a *Agent) IsStuck(since time.Time) bool {
	return a.settings.StopPods == 0 && a.pulse.began(since)
}

// Healthy returns an error if the loop is stalled. It is safe for concurrent use.
func (a *Agent) Healthy() error { return a.pulse.check(a.now()) }
