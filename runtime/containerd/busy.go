package containerd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// IsStuckTask reports whether containerd refuses to remove a container because of a
// task that its CRI has lost: a start that was cut off at the wrong moment leaves
// one behind.
func IsStuckTask(err error) bool {
	return err != nil && strings.Contains(err.Error(), "cannot delete running task")
}

// IsBusy reports whether containerd cannot do for a moment what it was asked for: it still does
// what a call began that was cut off, or the shim that it asked had just ended, which it
// learns only afterwards.
func IsBusy(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"is in starting state", "is already in removing state", "ttrpc: closed"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}

// busyPause is how long Retry waits before it asks a busy containerd again.
const busyPause = 100 * time.Millisecond

// Retry makes a call, and makes it again for as long as containerd is busy and the context
// lasts; it returns the last error of the call. Where a task that the CRI has lost is in the
// way, free ends it before the next try; with a nil free that error is final.
func Retry(ctx context.Context, call, free func(context.Context) error) error {
	var err error
	_ = wait.PollUntilContextCancel(ctx, busyPause, true, func(ctx context.Context) (bool, error) {
		switch err = call(ctx); {
		case IsStuckTask(err) && free != nil && ctx.Err() == nil:
			if freeErr := free(ctx); freeErr != nil {
				err = errors.Join(err, freeErr)
				return true, nil
			}
			return false, nil
		default:
			return !IsBusy(err), nil
		}
	})
	return err
}
