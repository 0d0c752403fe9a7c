package containerd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// IsStuckTask reports whether containerd refuses to remove a container because of a task that its CRI has lost. A start
// that is interrupted at the wrong moment leaves such a task.
func IsStuckTask(err error) bool {
	return err != nil && strings.Contains(err.Error(), "cannot delete running task")
}

// IsBusy reports whether containerd cannot handle a call for the moment. It is still processing an interrupted call, or
// the shim has just ended, which containerd notices only later.
func IsBusy(err error) bool {
	texts := []string{"is in starting state", "is already in removing state", "ttrpc: closed"}
	return err != nil && slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}

// busyPause is the pause before Retry repeats a call.
const busyPause = 100 * time.Millisecond

// Retry makes a call and repeats it while containerd is busy, until the context ends. It returns the last error of the
// call. If the CRI has lost a task, Retry calls free to end it before the next attempt. If free is nil, that error is
// final.
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
