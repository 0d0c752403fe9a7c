package remote

import (
	"context"
	"errors"
	"io"
	"net/http"

	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Forwarding is what Forward listens on. A port is written as LOCAL:REMOTE,
// REMOTE for the same number on both sides, or :REMOTE for any free one; for Engine.PortForward
// REMOTE may be the name of a container's port as well.
type Forwarding struct {
	Addresses, Ports []string
	// Out is told of every address and connection, Err of connections that failed.
	Out, Err io.Writer
}

// Forward listens on addresses of this machine and carries what comes there to where the
// runtime says, until the context ends; ErrLost when the connection to there does.
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
	err = forwarder.ForwardPorts()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the user ended it
	}
	if errors.Is(err, portforward.ErrLostConnectionToPod) {
		return ErrLost
	}
	return err
}
