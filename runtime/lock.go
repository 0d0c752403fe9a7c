package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// lock takes the pod for this process alone, once others that work on it are done.
func (e *Engine) lock(ctx context.Context, ref model.PodRef) (*state.Lock, error) {
	ctx, cancel := e.lockPatience(ctx)
	defer cancel()
	lock, err := e.layout.Pod(ref.UID).LockTelling(ctx, func(holder string) {
		e.waiting(fmt.Sprintf("pod %s: waiting for %s", ref, holder))
	})
	if locked := (*state.LockedError)(nil); errors.As(err, &locked) {
		locked.Pod = "pod " + ref.String()
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w; without the lock nothing is done", ref, err)
	}
	return lock, nil
}

// lockPatience bounds the wait for a lock.
func (e *Engine) lockPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.lockTimeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, e.lockTimeout, fmt.Errorf("gave up after %s (--lock-timeout)", e.lockTimeout))
}

// superseded tells that podctl's own copy of a manifest is not what was applied last
// any more: it must neither take back what somebody changed meanwhile nor make a pod
// that was deleted.
func superseded(ref model.PodRef, desired *podspec.Desired, j *state.Journal) error {
	switch {
	case desired == nil || !desired.Stored:
		return nil
	case j.Applied == nil:
		return &SupersededError{Pod: ref, Deleted: true}
	case j.Deletion != nil:
		return &SupersededError{Pod: ref, Deleting: true}
	case !j.Applied.SameAs(desired):
		return &SupersededError{Pod: ref}
	}
	return nil
}
