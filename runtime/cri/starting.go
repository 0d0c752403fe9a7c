package cri

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/podctl/podctl/runtime/sleep"
)

// A starting runtime has a socket without a listener, or answers that it is not ready. Without a listener, calls are
// repeated every startPause for startTime. If it answers that it is not ready, they are repeated as long as a call may
// take. The user is notified after startNoteTime.
const (
	startTime     = 5 * time.Second
	startPause    = 100 * time.Millisecond
	startNoteTime = time.Second
)

// starter waits for a starting runtime until its first answer.
type starter struct {
	// began is the time of the first failed call. noted is set after the user was notified.
	began time.Time
	noted bool
}

// again reports whether to repeat a failed call, after a pause.
func (s *starter) again(ctx context.Context, c connection, conn *grpc.ClientConn, err error) bool {
	if c.Starting == nil || c.answered.Load() {
		return false
	}
	if !isStarting(err) {
		c.answered.Store(true)
		return false
	}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	waited := time.Since(s.began)
	limit := startTime
	if isUninitialised(err) {
		limit = max(limit, c.Timeout)
	}
	if waited >= limit {
		return false
	}
	if waited >= startNoteTime && !s.noted {
		s.noted = true
		c.Starting(fmt.Sprintf("waiting for the container runtime at %s, which does not answer yet", c.endpoint))
	}
	if sleep.For(ctx, startPause) != nil {
		return false
	}
	if conn != nil {
		conn.ResetConnectBackoff()
	}
	return true
}

// isStarting reports whether a call did not reach the runtime, or came before containerd was initialized. In both cases
// the call had no effect.
func isStarting(err error) bool {
	return isUninitialised(err) ||
		(status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "while dialing"))
}

// isUninitialised reports whether containerd has not loaded its state yet.
func isUninitialised(err error) bool {
	return err != nil && strings.Contains(err.Error(), "server is not initialized yet")
}
