package agent

import "context"

// Look takes up the stored workloads as they are now.
func (a *Agent) Look(ctx context.Context) error {
	if a.settings.Look == nil {
		return nil
	}
	return a.settings.Look(ctx)
}

// Reload lets every source look now, and the facts of the machine be asked for again. Pods that were
// rejected are asked to be admitted once more.
func (a *Agent) Reload(ctx context.Context) error {
	a.inbox.post(ctx, func() {
		a.renew()
		a.admits.askAgain(a.settings.Now())
		for _, reread := range a.rereads {
			select {
			case reread <- struct{}{}:
			default:
			}
		}
	})
	return context.Cause(ctx)
}
