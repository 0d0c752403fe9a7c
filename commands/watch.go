package commands

import (
	"context"
	"errors"
	"time"
)

// clearScreen puts the cursor into the first corner and clears what follows.
const clearScreen = "\x1b[H\x1b[2J"

// watchTick is how often a watch looks for changes.
const watchTick = time.Second

// sleep waits; false when the context ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}

// watchEnded is how a command ends that goes on until its time is over or somebody
// interrupts it, which needs no words.
func watchEnded(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return withCode(exitInterrupted)
	}
	return nil
}
