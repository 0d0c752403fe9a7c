package terminal

import (
	"context"
	"time"
)

// ClearScreen puts the cursor into the first corner and clears what follows.
const ClearScreen = "\x1b[H\x1b[2J"

// ClearLine puts the cursor to the beginning of the line and clears what follows.
const ClearLine = "\r\x1b[K"

// WatchInterval is how often a watch looks for changes.
const WatchInterval = time.Second

// Sleep waits, and reports whether the context goes on.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}
