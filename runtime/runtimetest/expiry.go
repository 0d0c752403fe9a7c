package runtimetest

import (
	"context"
	"sync"
)

// Expiring returns a context whose deadline passes when expire is called, and not at a time that a slow machine could
// reach too early.
func Expiring(parent context.Context) (ctx context.Context, expire func()) {
	expired := make(chan struct{})
	return expiring{parent, expired}, sync.OnceFunc(func() { close(expired) })
}

type expiring struct {
	context.Context //nolint:containedctx // it is a context

	expired chan struct{}
}

// Done is closed when the deadline has passed.
func (c expiring) Done() <-chan struct{} { return c.expired }

// Err is that of a deadline that has passed.
func (c expiring) Err() error {
	select {
	case <-c.expired:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// ExpireAt returns a context whose deadline passes at the nth call of a method after the first call of another one. If
// after is empty, the calls count from now.
func (s *Server) ExpireAt(parent context.Context, after, method string, nth int) context.Context {
	ctx, expire := Expiring(parent)
	begun := after == ""
	if !begun {
		s.Fail(Fault{Method: after, Times: 1, Only: func(any) bool { begun = true; return false }})
	}
	s.Fail(Fault{Method: method, Times: 1, Only: func(any) bool {
		if begun {
			nth--
		}
		if begun && nth <= 0 {
			expire()
		}
		return false
	}})
	return ctx
}
