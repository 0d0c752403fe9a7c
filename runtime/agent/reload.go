package agent

import "context"

// Reload lets every source look now, and the facts of the machine be asked for again.
func (a *Agent) Reload(ctx context.Context) error {
	a.inbox.post(ctx, func() {
		a.renew()
		for _, reread := range a.rereads {
			select {
			case reread <- struct{}{}:
			default:
			}
		}
	})
	return context.Cause(ctx)
}
