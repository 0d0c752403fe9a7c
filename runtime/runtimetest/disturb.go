package runtimetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Disturbance is what happens to one call that goes through a Proxy.
type Disturbance struct {
	// Method is the call's short name, for example StartContainer; empty means any.
	Method string
	// Nth counts the calls of the method from the moment of Disturb on; 1 is the next.
	Nth int
	// Delay holds the call back.
	Delay time.Duration
	// Kill is called before the call is passed on, KillAfter when the runtime has done
	// its work: they end the client, or the runtime.
	Kill, KillAfter func()
	// Fail answers the call without passing it on.
	Fail codes.Code
	// Lose passes the call on and answers with this code, as when the answer is lost.
	Lose codes.Code
	// Text is what a call says that fails or whose answer is lost; empty means that it was
	// wanted so.
	Text string
	// Hang passes the call on and never answers.
	Hang bool
}

// Disturb makes something happen to a later call, once.
func (p *Proxy) Disturb(d Disturbance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.Nth = max(d.Nth, 1)
	p.disturbances = append(p.disturbances, &d)
}

// Calm forgets disturbances whose calls never came, and returns how many there were.
func (p *Proxy) Calm() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := len(p.disturbances)
	p.disturbances = nil
	return left
}

// Count is how often a method was called; empty means any.
func (p *Proxy) Count(method string) int {
	calls := p.Calls()
	if method == "" {
		return len(calls)
	}
	return len(slices.DeleteFunc(calls, func(m string) bool { return m != method }))
}

// meets counts a call, and reports whether it is the one.
func (d *Disturbance) meets(method string) bool {
	if d.Method != "" && d.Method != method {
		return false
	}
	d.Nth--
	return d.Nth == 0
}

// fail is the answer of a call that shall fail.
func (d *Disturbance) fail(code codes.Code) error {
	return status.Error(code, cmp.Or(d.Text, "failed on demand"))
}

// before is what happens before the call is passed on.
func (d *Disturbance) before(ctx context.Context) error {
	if d == nil {
		return nil
	}
	select {
	case <-time.After(d.Delay):
	case <-ctx.Done():
		return ctx.Err()
	}
	if d.Kill != nil {
		d.Kill()
		return d.fail(codes.Unavailable)
	}
	if d.Fail != codes.OK {
		return d.fail(d.Fail)
	}
	return nil
}

// after takes the runtime's answer and does with it what it shall.
func (d *Disturbance) after(to stream, from grpc.ServerStream) error {
	if d.Lose == codes.OK && !d.Hang && d.KillAfter == nil {
		return forward(to, from)
	}
	// The runtime has done its work once it has answered.
	err := forward(to, nowhere{})
	switch {
	case d.KillAfter != nil:
		d.KillAfter()
		return d.fail(codes.Unavailable)
	case d.Hang:
		<-from.Context().Done()
		return from.Context().Err()
	case err != nil:
		return err
	}
	return d.fail(d.Lose)
}

// nowhere takes messages and forgets them.
type nowhere struct{}

// SendMsg forgets a message.
func (nowhere) SendMsg(any) error { return nil }

// RecvMsg has none.
func (nowhere) RecvMsg(any) error { return nil }
