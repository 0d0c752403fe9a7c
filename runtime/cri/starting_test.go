package cri

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestStartingRuntime checks that calls to a runtime without an answer so far are repeated for some seconds if they did
// not reach it. The user is notified once. Calls that reached the runtime are never repeated.
func TestStartingRuntime(t *testing.T) {
	refused := status.Error(codes.Unavailable,
		`connection error: desc = "transport: Error while dialing: dial unix x: connect: connection refused"`)
	young := errors.New("server is not initialized yet")
	broken := status.Error(codes.Unavailable, "error reading from server: EOF")
	for name, c := range map[string]struct {
		err      error
		failures int
		answered bool
		calls    int
		noted    bool
		fails    bool
	}{
		"answers at once":   {refused, 0, false, 1, false, false},
		"comes soon":        {refused, 3, false, 4, false, false},
		"has yet to read":   {young, 3, false, 4, false, false},
		"reads for long":    {young, 300, false, 301, true, false},
		"takes its time":    {refused, 30, false, 31, true, false},
		"does not come":     {refused, 1000, false, 51, true, true},
		"breaks off":        {broken, 1, false, 1, false, true},
		"answered and went": {refused, 1, true, 1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reported []string
				conn := connection{
					Client:   &Client{Timeout: time.Minute, Starting: func(text string) { reported = append(reported, text) }},
					answered: &atomic.Bool{},
				}
				conn.answered.Store(c.answered)
				calls := 0
				invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					if calls++; calls <= c.failures {
						return c.err
					}
					return nil
				}
				err := conn.intercept(t.Context(), "Version", nil, nil, nil, invoke)
				if (err != nil) != c.fails || calls != c.calls || (len(reported) == 1) != c.noted || len(reported) > 1 {
					t.Errorf("%v after %d calls, reported %q", err, calls, reported)
				}
				// After any answer the runtime counts as started.
				if !c.fails {
					calls = 0
					refuse := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
						calls++
						return refused
					}
					err := conn.intercept(t.Context(), "Version", nil, nil, nil, refuse)
					if err == nil || calls != 1 {
						t.Errorf("called again %d times after it had answered: %v", calls, err)
					}
				}
				if c.noted && !strings.HasPrefix(reported[0], "waiting for the container runtime at ") {
					t.Error(reported)
				}
			})
		})
	}
}
