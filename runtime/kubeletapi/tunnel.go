package kubeletapi

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/gorilla/websocket"
	protocol "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// tunnel carries SPDY between WebSocket messages of the client and a connection to the runtime's address (kubelet:
// getPortForward, whose tunnel links client-go's clientset). The runtime chooses the protocol.
func tunnel(w http.ResponseWriter, r *http.Request, to *url.URL) error {
	runtime, chosen, err := dialSPDY(r, to)
	if err != nil {
		return err
	}
	defer runtime.Close() //nolint:errcheck // its end is the end of the streams
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	if chosen != "" {
		upgrader.Subprotocols = []string{protocol.WebsocketsSPDYTunnelingPrefix + chosen}
	}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil // the library has written the response
	}
	client := portforward.NewTunnelingConnection("server", socket)
	defer client.Close() //nolint:errcheck // as above
	ended := make(chan struct{}, 2)
	carry := func(to io.Writer, from io.Reader) {
		io.Copy(to, from) //nolint:errcheck // the end of one direction ends the other
		ended <- struct{}{}
	}
	go carry(runtime, client)
	go carry(client, runtime)
	<-ended
	return nil
}

// dialSPDY opens a connection to the runtime's address with one of the protocols that a client offers, and returns the
// one that the runtime chooses.
func dialSPDY(r *http.Request, to *url.URL) (io.ReadWriteCloser, string, error) {
	request := (&http.Request{Method: http.MethodPost, URL: to, Header: http.Header{}}).WithContext(r.Context())
	request.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	request.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	for _, p := range websocket.Subprotocols(r) {
		offered, is := strings.CutPrefix(p, protocol.WebsocketsSPDYTunnelingPrefix)
		if is && strings.HasSuffix(offered, protocol.KubernetesSuffix) {
			request.Header.Add(httpstream.HeaderProtocolVersion, offered)
		}
	}
	response, err := (&http.Transport{MaxResponseHeaderBytes: bodyMax, DisableCompression: true}).RoundTrip(request)
	if err != nil {
		return nil, "", refuse(http.StatusInternalServerError, "%s", err)
	}
	stream, is := response.Body.(io.ReadWriteCloser)
	if response.StatusCode != http.StatusSwitchingProtocols || !is ||
		!strings.EqualFold(response.Header.Get(httpstream.HeaderUpgrade), spdy.HeaderSpdy31) {
		_ = response.Body.Close()
		return nil, "", refuse(
			http.StatusInternalServerError, "the runtime does not open a stream: %s", response.Status)
	}
	return stream, strings.TrimSpace(response.Header.Get(httpstream.HeaderProtocolVersion)), nil
}
