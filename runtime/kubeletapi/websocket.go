package kubeletapi

import (
	"net/http"

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
		translate(w, r, to, options)
		return nil
	}
	h.ServeHTTP(w, r)
	return nil
}

// forwardPorts carries the connections to a pod's ports between the client and the runtime's address. SPDY within
// WebSocket is unpacked (kubelet: getPortForward).
func forwardPorts(w http.ResponseWriter, r *http.Request, address string) error {
	h, to, err := forwarding(r, address)
	if err != nil {
		return err
	}
	if isTunnel(r) {
		return tunnel(w, r, to)
	}
	h.ServeHTTP(w, r)
	return nil
}

// isTunnel reports whether a client sends SPDY within WebSocket.
func isTunnel(r *http.Request) bool { return wsstream.IsWebSocketRequestWithTunnelingProtocol(r) }
