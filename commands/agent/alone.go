package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/state"
)

// alone takes the runtime for this agent. The function that it returns gives it back. An agent of another state directory does not
// know the pods of this one, and the two undo each other's work.
func (o *agentOptions) alone(ctx context.Context, locks state.Locks, endpoint string, log *slog.Logger) (release func() error, err error) {
	lock, err := locks.Runtime(ctx, state.RuntimeLockDir, endpoint)
	locked := (*filelock.LockedError)(nil)
	switch {
	case err == nil:
		return lock.Unlock, nil
	case errors.As(err, &locked) && !o.otherAgent:
		return nil, fmt.Errorf("another agent, %s, keeps pods on %s, and the two would undo each other's work: stop it, or use another "+
			"runtime (podctl node up); --allow-other-agent goes on all the same", locked.Holder, endpoint)
	case locked != nil:
		log.Warn("another agent keeps pods on the same runtime", "agent", locked.Holder, "runtime", endpoint)
	default:
		log.Warn("it is not known whether another agent uses the runtime", "error", err.Error())
	}
	return func() error { return nil }, nil
}
