package agent

import (
	"fmt"
	"sync/atomic"
	"time"
)

// stalledAfter is how long one turn of the loop may take before the agent counts as stalled. A turn takes milliseconds: what takes
// longer is done beside the loop. The kubelet's limit is the same (SyncLoopHealthCheck).
const stalledAfter = 5 * time.Minute

// pulse is since when the loop works on its present turn; nil while it waits for something to do.
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

// began reports whether the loop still works on a turn that it began before some time.
func (p *pulse) began(before time.Time) bool {
	since := p.since.Load()
	return since != nil && since.Before(before)
}

// Lingers reports whether the loop is still at what it did when the agent was told to end. An agent that must stop its pods is waited
// for; any other may be left: pods run on, and the next agent goes on from what is stored.
func (a *Agent) Lingers(told time.Time) bool { return a.settings.StopPods == 0 && a.pulse.began(told) }

// Healthy returns an error if the loop is stalled. It may be called at any time.
func (a *Agent) Healthy() error { return a.pulse.check(a.now()) }
