package kubeletapi

import (
	"context"
	"net/http"

	translator "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// forward carries the streams of a process between the client and the runtime's address. Runtimes do not have version 5
// of the WebSocket protocol, which can end an input, so the server translates it to SPDY (kubelet: getExec).
func forward(w http.ResponseWriter, r *http.Request, address string, options *remotecommand.Options) error {
	h, to, err := forwarding(r, address)
	if err != nil {
		return err
	}
	if wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		h = translator.NewStreamTranslatorHandler(to, nil, 0, translator.Options{
			Stdin: options.Stdin, Stdout: options.Stdout, Stderr: options.Stderr, Tty: options.TTY,
		})
	}
	untilGone(h).ServeHTTP(w, r)
	return nil
}

// forwardPorts carries the connections to a pod's ports between the client and the runtime's address. SPDY within
// WebSocket is unpacked (kubelet: getPortForward).
func forwardPorts(w http.ResponseWriter, r *http.Request, address string) error {
	h, _, err := forwarding(r, address)
	if err != nil {
		return err
	}
	if isTunnel(r) {
		h = translator.NewTunnelingHandler(h)
	}
	untilGone(h).ServeHTTP(w, r)
	return nil
}

// isTunnel reports whether a client sends SPDY within WebSocket.
func isTunnel(r *http.Request) bool { return wsstream.IsWebSocketRequestWithTunnelingProtocol(r) }

// untilGone ends the context of a request with its connection. The HTTP server does not do that for an upgraded one,
// and a process without output would keep the stream open.
func untilGone(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		if c := connectionOf(ctx); c != nil {
			go func() {
				select {
				case <-c.gone:
					stop()
				case <-ctx.Done():
				}
			}()
		}
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}
