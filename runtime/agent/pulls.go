package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// turns are the pulls that have ended, by pod, whose passes wait until they may go on.
type turns map[types.UID][]chan struct{}

// give lets the pass of a pod go on.
func (t turns) give(uid types.UID) {
	for _, turn := range t[uid] {
		close(turn)
	}
	delete(t, uid)
}

// pulling lets a pass that waits for a registry keep no other from beginning: with as many slow pulls
// as there may be passes no container would be restarted.
func (a *Agent) pulling(ctx context.Context, uid types.UID) func() func(context.Context) error {
	return func() func(context.Context) error {
		a.inbox.post(ctx, func() { a.workers.Pulling(uid) })
		return func(ctx context.Context) error {
			turn := make(chan struct{})
			a.inbox.post(ctx, func() {
				a.workers.Pulled(uid)
				a.turns[uid] = append(a.turns[uid], turn)
			})
			select {
			case <-turn:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}
