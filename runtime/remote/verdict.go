package remote

import (
	"net/http"
	"net/url"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // the dialer of client-go still speaks it
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
)

// spdyExecutor sets verdict when the runtime reports the end of a process. Without a report, the library assumes
// success although the connection broke.
func spdyExecutor(u *url.URL, verdict *atomic.Bool) (remotecommand.Executor, error) {
	transport, upgrader, err := spdy.RoundTripperFor(&restclient.Config{})
	if err != nil {
		return nil, err
	}
	return remotecommand.NewSPDYExecutorForTransports(transport, &observedUpgrader{upgrader, verdict}, "POST", u)
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
