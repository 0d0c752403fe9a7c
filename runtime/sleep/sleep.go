// Package sleep waits for a time. In: a context, a duration. Out: whether the time has passed.
package sleep

import (
	"context"
	"time"
)

// For waits for a time, or until the context ends, and returns the cause of that.
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
