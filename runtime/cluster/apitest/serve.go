package apitest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Server is a server in memory.
type Server struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	refuses bool
	port    int
}

// Confirmed confirms every API server.
func Confirmed(context.Context) error { return nil }

// Serve starts a server, and returns it with the configuration of its clients. It ends with the test.
func Serve(t *testing.T, handler http.Handler) (*Server, *rest.Config) {
	t.Helper()
	s := &Server{conns: make(chan net.Conn), closed: make(chan struct{})}
	web := httptest.NewUnstartedServer(handler)
	_ = web.Listener.Close()
	web.Listener = s
	web.Start()
	transport := &http.Transport{DialContext: s.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		web.CloseClientConnections()
		web.Close()
	})
	return s, &rest.Config{Host: "http://api.test", Transport: transport, QPS: -1}
}

// Refuse sets whether the server refuses new connections.
func (s *Server) Refuse(refuses bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = refuses
}

// Refusals returns how many connections the server has refused.
func (s *Server) Refusals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.port
}

// Accept returns the next connection.
func (s *Server) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the server.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr returns an address without a meaning.
func (s *Server) Addr() net.Addr { return &net.TCPAddr{} }

func (s *Server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := s.refusal(); err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	select {
	case s.conns <- server:
		return client, nil
	case <-s.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refusal returns the error of a connection that the server refuses. Each is from another port.
func (s *Server) refusal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.refuses {
		return nil
	}
	s.port++
	from := &net.TCPAddr{Port: s.port}
	return &net.OpError{Op: "dial", Net: "tcp", Source: from, Addr: &net.TCPAddr{}, Err: syscall.ECONNREFUSED}
}

// Slow lets a handler answer only after some time, or not at all if the client gives up.
func Slow(after time.Duration, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(after):
			answer(w, r)
		}
	}
}
