package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// pulling lets a pass that waits for a registry keep no other from beginning: with as many slow pulls
// as there may be passes no container would be restarted.
type pulling struct {
	*loopState

	// turns are the pulls that have ended, by pod, whose passes wait until they may go on.
	turns map[types.UID][]chan struct{}
}

// of is called by the pass of a pod when it begins to pull, and what it returns when the pull has ended.
func (b *pulling) of(ctx context.Context, uid types.UID) func() func(context.Context) error {
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

// goOn lets passes go on whose pulls have ended.
func (b *pulling) goOn() {
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
