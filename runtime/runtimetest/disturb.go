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

// Disturbance changes one call through a Proxy.
type Disturbance struct {
	// Method is the call's short name, for example StartContainer; empty means any.
	Method string
	// Nth counts the calls of the method after Disturb; 1 is the next.
	Nth int
	// Delay delays the call. Await, which may be nil, is called after it and delays the call until it returns.
	Delay time.Duration
	Await func()
	// Kill is called before the call is passed on, and KillAfter when the runtime has done its work. They end the
	// client or the runtime.
	Kill, KillAfter func()
	// Fail answers the call with this code without passing it on.
	Fail codes.Code
	// Lose passes the call on and answers with this code, as if the answer was lost.
	Lose codes.Code
	// Text is the message of a failed call. If empty, the message states that the failure is intended.
	Text string
	// Hang passes the call on and never answers.
	Hang bool
}

// Disturb adds a disturbance for one later call.
func (p *Proxy) Disturb(d Disturbance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.Nth = max(d.Nth, 1)
	p.disturbances = append(p.disturbances, &d)
}

// Calm removes disturbances whose calls never came, and returns their number.
func (p *Proxy) Calm() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := len(p.disturbances)
	p.disturbances = nil
	return left
}

// Pending returns the number of disturbances whose calls have not come.
func (p *Proxy) Pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.disturbances)
}

// Count returns how often a method was called; empty means any.
func (p *Proxy) Count(method string) int {
	calls := p.Calls()
	if method == "" {
		return len(calls)
	}
	return len(slices.DeleteFunc(calls, func(m string) bool { return m != method }))
}

// meets counts a call, and reports whether it is the one to disturb.
func (d *Disturbance) meets(method string) bool {
	if d.Method != "" && d.Method != method {
		return false
	}
	d.Nth--
	return d.Nth == 0
}

// fail returns the error of a disturbed call.
func (d *Disturbance) fail(code codes.Code) error {
	return status.Error(code, cmp.Or(d.Text, "failed on demand"))
}

// before does its part before the call is passed on.
func (d *Disturbance) before(ctx context.Context) error {
	if d == nil {
		return nil
	}
	select {
	case <-time.After(d.Delay):
	case <-ctx.Done():
		return ctx.Err()
	}
	if d.Await != nil {
		d.Await()
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

// after handles the runtime's answer.
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

// nowhere is a stream that discards messages.
type nowhere struct{}

// SendMsg discards a message.
func (nowhere) SendMsg(any) error { return nil }

// RecvMsg returns no message.
func (nowhere) RecvMsg(any) error { return nil }
