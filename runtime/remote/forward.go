package remote

import (
	"context"
	"errors"
	"io"
	"net/http"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Forwarding is what Forward listens on. A port is written as LOCAL:REMOTE,
// REMOTE for the same number on both sides, or :REMOTE for any free one; for Engine.PortForward
// REMOTE may be the name of a container's port as well.
type Forwarding struct {
	Addresses, Ports []string
	// Out receives a line for every address and connection, Err for connections that failed.
	Out, Err io.Writer
}

// Forward listens on addresses of this machine and carries what comes there to where the
// runtime says, until the context ends; a *RefusedError or ErrLost when the connection to
// there does. It is called once in a process.
func Forward(ctx context.Context, address string, f *Forwarding) error {
	u, err := parse(address)
	if err != nil {
		return err
	}
	transport, upgrader, err := spdy.RoundTripperFor(&restclient.Config{})
	if err != nil {
		return err
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u)
	forwarder, err := portforward.NewOnAddresses(dialer, f.Addresses, f.Ports, ctx.Done(), make(chan struct{}), f.Out, f.Err)
	if err != nil {
		return err
	}
	cause := heardErrors()
	err = forwarder.ForwardPorts()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the user ended it
	}
	if !errors.Is(err, portforward.ErrLostConnectionToPod) {
		return err
	}
	if refused := cause(); refused != nil {
		return &RefusedError{Err: refused}
	}
	return ErrLost
}

// RefusedError is a connection that the pod refused; all others end with it.
type RefusedError struct{ Err error }

// Error says which port it was, and what was said.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// heardErrors listens to what the library reports in no other way: a connection that the pod
// refuses, after which it gives up all others. The function returns the first of them.
func heardErrors() func() error {
	first := make(chan error, 1)
	utilruntime.ErrorHandlers = append(utilruntime.ErrorHandlers, func(_ context.Context, err error, _ string, _ ...any) {
		select {
		case first <- err:
		default:
		}
	})
	return func() error {
		select {
		case err := <-first:
			return err
		default:
			return nil
		}
	}
}
