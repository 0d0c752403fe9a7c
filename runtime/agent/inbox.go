package agent

import (
	"context"
	"time"

	"github.com/podctl/podctl/runtime/cri"
)

// inbox is how goroutines beside the loop reach it: it does what they post, one after the other.
type inbox chan func()

// post lets the loop do something, unless the context ends before.
func (i inbox) post(ctx context.Context, do func()) {
	select {
	case i <- do:
	case <-ctx.Done():
	}
}

// every posts something to do, again and again.
func (i inbox) every(ctx context.Context, period time.Duration, do func()) {
	for cri.Sleep(ctx, period) == nil {
		i.post(ctx, do)
	}
}

// ask lets the loop find something out, and waits for it.
func ask[T any](ctx context.Context, i inbox, find func() T) (found T, err error) {
	reply := make(chan T, 1)
	i.post(ctx, func() { reply <- find() })
	select {
	case found = <-reply:
		return found, nil
	case <-ctx.Done():
		return found, context.Cause(ctx)
	}
}
