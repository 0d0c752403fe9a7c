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

// Healthy returns an error if the loop is stalled. It may be called at any time.
func (a *Agent) Healthy() error { return a.pulse.check(a.settings.Now()) }
