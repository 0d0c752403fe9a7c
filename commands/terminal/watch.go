package terminal

import (
	"context"
	"time"
)

// ClearScreen moves the cursor to the first corner and clears the screen.
const ClearScreen = "\x1b[H\x1b[2J"

// WatchInterval is the time between two checks of a watch.
const WatchInterval = time.Second

// Sleep waits for d or the end of the context. It reports whether the context has not ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}
