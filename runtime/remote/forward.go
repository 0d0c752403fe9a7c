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

// Forwarding defines where Forward listens. A port is LOCAL:REMOTE, REMOTE for the same number on both sides, or
// :REMOTE for any free local port. For Engine.PortForward, REMOTE may also be the name of a container's port.
type Forwarding struct {
	Addresses, Ports []string
	// Out receives a line for every address and connection, Err for failed connections.
	Out, Err io.Writer
}

// Forward listens on addresses of this machine and forwards connections to the runtime's address until the context
// ends. If the connection to the runtime ends, it returns a *RefusedError or ErrLost. Call it once in a process.
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
	forwarder, err := portforward.NewOnAddresses(dialer, f.Addresses, f.Ports,
		ctx.Done(), make(chan struct{}), f.Out, f.Err)
	if err != nil {
		return err
	}
	cause := collectErrors()
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

// RefusedError reports a connection that the pod refused, which ends all others.
type RefusedError struct{ Err error }

// Error names the port and the reason.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// collectErrors collects errors that the library reports only through a global handler: a connection that the pod
// refuses, after which the library closes all others. The returned function returns the first error.
func collectErrors() func() error {
	first := make(chan error, 1)
	keepFirst := func(_ context.Context, err error, _ string, _ ...any) {
		select {
		case first <- err:
		default:
		}
	}
	utilruntime.ErrorHandlers = append(utilruntime.ErrorHandlers, keepFirst)
	return func() error {
		select {
		case err := <-first:
			return err
		default:
			return nil
		}
	}
}
