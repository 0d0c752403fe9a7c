package nodestatus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/rest"
)

// apiServer is an API server for one Node and its lease, in the memory of the test.
type apiServer struct {
	*httptest.Server

	mu      sync.Mutex
	version int
	node    *v1.Node
	lease   *coordinationv1.Lease
	// requests are the requests without the watch, with their time since the start: "0s POST nodes".
	requests []string
	begun    time.Time
	// fault answers a request in place of the API server. It returns false to let the API server answer.
	fault func(w http.ResponseWriter, r *http.Request) bool
	// watches receive the changes of the Node.
	watches map[chan *v1.Node]bool
}

// pipes is a listener of connections in memory, because a connection of the kernel does not wait for the clock of the
// test.
type pipes struct {
	net.Listener

	conns chan net.Conn
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.ended:
	default:
		close(p.ended)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.ended:
	case <-ctx.Done():
	}
	return nil, net.ErrClosed
}

// newAPIServer returns a server, and the configuration of a client.
func newAPIServer() (*apiServer, *rest.Config) {
	s := &apiServer{version: 100, begun: time.Now(), watches: map[chan *v1.Node]bool{}}
	listener := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(s)
	_ = s.Listener.Close()
	s.Listener = listener
	s.Start()
	return s, &rest.Config{Host: s.URL, Dial: listener.dial, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// change changes the server under its lock.
func (s *apiServer) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// edit changes the Node as another client would.
func (s *apiServer) edit(do func(*v1.Node)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := s.node.DeepCopy()
	do(node)
	s.store(node)
}

func (s *apiServer) store(node *v1.Node) {
	s.version++
	node.ResourceVersion, node.TypeMeta = strconv.Itoa(s.version), metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
	s.node = node
	for to := range s.watches {
		to <- node
	}
}

// log returns the requests since the last call.
func (s *apiServer) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := strings.Join(s.requests, ", ")
	s.requests = nil
	return log
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: string(reason), // a status code
	})
}

func answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

// ServeHTTP answers a request.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	watching := r.URL.Query().Get("watch") == "true"
	isLease := strings.Contains(r.URL.Path, "/leases")
	s.mu.Lock()
	if !watching && !r.URL.Query().Has("fieldSelector") && !isLease {
		at := time.Since(s.begun).Truncate(10 * time.Millisecond)
		s.requests = append(s.requests, fmt.Sprintf("%s %s", at, r.Method))
	}
	fault := s.fault
	s.mu.Unlock()
	switch {
	case fault != nil && fault(w, r):
	case isLease:
		s.serveLease(w, r, body)
	case watching:
		s.serveWatch(w, r)
	case r.URL.Query().Has("fieldSelector"):
		s.serveList(w)
	default:
		s.serveNode(w, r, parts, body)
	}
}

func (s *apiServer) serveList(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := v1.NodeList{
		TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)},
	}
	if s.node != nil {
		list.Items = append(list.Items, *s.node)
	}
	answer(w, list)
}

func (s *apiServer) serveWatch(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		return
	}
	events := make(chan *v1.Node, 1000)
	s.change(func() { s.watches[events] = true })
	defer s.change(func() { delete(s.watches, events) })
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush() // a test server's writer is one
	for {
		select {
		case <-r.Context().Done():
			return
		case node := <-events:
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": node})
			w.(http.Flusher).Flush() // as above
		}
	}
}

func (s *apiServer) serveNode(w http.ResponseWriter, r *http.Request, parts []string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodPost && s.node != nil:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	case r.Method == http.MethodPost:
		node := &v1.Node{}
		_ = json.Unmarshal(body, node)
		node.UID = types.UID(fmt.Sprintf("u%d", s.version))
		s.store(node)
	case s.node == nil || parts[3] != s.node.Name:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	case r.Method == http.MethodPatch:
		if len(parts) != 5 || parts[4] != "status" || r.Header.Get("Content-Type") != string(types.StrategicMergePatchType) {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
		before, _ := json.Marshal(s.node)
		merged, err := strategicpatch.StrategicMergePatch(before, body, v1.Node{})
		node := &v1.Node{}
		if err != nil || json.Unmarshal(merged, node) != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
		s.store(node)
	}
	answer(w, s.node)
}

// renewed returns when the lease was last renewed.
func (s *apiServer) renewed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.Spec.RenewTime.Time
}

func (s *apiServer) serveLease(w http.ResponseWriter, r *http.Request, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method != http.MethodGet {
		lease := &coordinationv1.Lease{}
		_ = json.Unmarshal(body, lease)
		s.version++
		lease.ResourceVersion = strconv.Itoa(s.version)
		s.lease = lease
	}
	if s.lease == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	answer(w, s.lease)
}

// end closes the server and its connections, so that no goroutine stays.
func (s *apiServer) end(t *testing.T) {
	t.Helper()
	s.CloseClientConnections()
	s.Close()
}
