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

// A runtime that is just starting has a socket to which nobody listens yet, or answers that it
// is not ready. It is asked again: for how long while nobody listens, how often, and after which time the user is told. One that answers
// that it is not ready is there, and is asked as long as a call may take.
const (
	startTime     = 5 * time.Second
	startPause    = 100 * time.Millisecond
	startNoteTime = time.Second
)

// starter waits for a runtime that is just starting, until it has answered for the first time.
type starter struct {
	// began is when a call failed first because of it, noted whether the user was told.
	began time.Time
	noted bool
}

// again reports whether a call that ended with an error is made again. It waits before.
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

// isStarting reports whether a call did not reach the runtime, or reached it before it knew what
// it runs. Either way nothing was done.
func isStarting(err error) bool {
	return isUninitialised(err) || (status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "while dialing"))
}

// isUninitialised reports whether containerd has not read yet what it runs.
func isUninitialised(err error) bool {
	return err != nil && strings.Contains(err.Error(), "server is not initialized yet")
}
