package remote

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // the dialer of client-go still speaks it
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
)

// SPDY returns an executor that carries streams to an address of the runtime with SPDY. If a stream ends without a
// report about the process, the error is ErrLost. The library assumes success then, although the connection broke.
func SPDY(u *url.URL) (remotecommand.Executor, error) {
	transport, upgrader, err := spdy.RoundTripperFor(&restclient.Config{})
	if err != nil {
		return nil, err
	}
	verdict := new(atomic.Bool)
	observed := &observedUpgrader{upgrader, verdict}
	executor, err := remotecommand.NewSPDYExecutorRejectRedirects(transport, observed, http.MethodPost, u)
	return &observedExecutor{executor, verdict}, err
}

type observedExecutor struct {
	remotecommand.Executor
	// verdict is set when the runtime has reported the end of the process.
	verdict *atomic.Bool
}

// StreamWithContext carries the streams until the process ends.
func (x *observedExecutor) StreamWithContext(ctx context.Context, o remotecommand.StreamOptions) error {
	err := x.Executor.StreamWithContext(ctx, o)
	if err == nil && !x.verdict.Load() {
		return ErrLost
	}
	return err
}

type observedUpgrader struct {
	spdy.Upgrader
	verdict *atomic.Bool
}

// NewConnection creates a connection whose error stream is observed.
func (h *observedUpgrader) NewConnection(resp *http.Response) (httpstream.Connection, error) {
	conn, err := h.Upgrader.NewConnection(resp)
	if err != nil {
		return nil, err
	}
	return &observedConnection{conn, h.verdict}, nil
}

type observedConnection struct {
	httpstream.Connection
	verdict *atomic.Bool
}

// CreateStream observes the stream that reports the end of a process.
func (h *observedConnection) CreateStream(headers http.Header) (httpstream.Stream, error) {
	stream, err := h.Connection.CreateStream(headers)
	if err != nil || headers.Get(v1.StreamType) != v1.StreamTypeError {
		return stream, err
	}
	return &observedStream{stream, h.verdict}, nil
}

type observedStream struct {
	httpstream.Stream
	verdict *atomic.Bool
}

// Read sets the verdict when data arrives.
func (h *observedStream) Read(p []byte) (int, error) {
	n, err := h.Stream.Read(p)
	if n > 0 {
		h.verdict.Store(true)
	}
	return n, err
}
