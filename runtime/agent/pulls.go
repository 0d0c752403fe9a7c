package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// pullQueue lets other passes begin while a pass waits for a registry. Otherwise a few slow pulls could take all
// Parallel slots and no container would be restarted.
type pullQueue struct {
	*loopState

	// turns holds, by pod, the pulls that have ended and whose passes wait to continue.
	turns map[types.UID][]chan struct{}
}

// callback returns the callback of a pod's pass. The pass calls it when it begins to pull, and calls its result when
// the pull has ended.
func (b *pullQueue) callback(ctx context.Context, uid types.UID) func() func(context.Context) error {
	return func() func(context.Context) error {
		b.inbox.post(ctx, func() { b.workers.Pulling(uid) })
		return func(ctx context.Context) error {
			turn := make(chan struct{})
			b.inbox.post(ctx, func() {
				b.workers.Pulled(uid)
				b.turns[uid] = append(b.turns[uid], turn)
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

// continueDue lets passes continue whose pulls have ended.
func (b *pullQueue) continueDue() {
	if len(b.turns) == 0 {
		return
	}
	for _, uid := range b.workers.Continue() {
		for _, turn := range b.turns[uid] {
			close(turn)
		}
		delete(b.turns, uid)
	}
}
