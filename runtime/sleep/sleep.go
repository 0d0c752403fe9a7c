// Package sleep waits for a duration or the end of a context, and wakes goroutines.
package sleep

import (
	"context"
	"time"
)

// For waits for a duration. If the context ends before, it returns the context's cause.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Wake wakes the goroutine that receives from c, without blocking. c has room for one value, which is enough for all
// calls before it wakes.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
