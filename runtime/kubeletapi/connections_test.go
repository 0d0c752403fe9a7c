package kubeletapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/remotecommand"
)

// pipes is a listener whose connections are pipes.
type pipes struct {
	net.Listener
	dialed chan net.Conn
}

func (p *pipes) Accept() (net.Conn, error) { return <-p.dialed, nil }

// connect returns the client's side and the server's side of a new connection.
func (p *pipes) connect(t *testing.T, l *listener) (client net.Conn, server *connection) {
	t.Helper()
	client, other := net.Pipe()
	p.dialed <- other
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, conn.(*connection)
}

func (c *connection) isClosed() bool {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	return c.closed
}

// TestTooManyConnections checks that the longest waiting connection gives way to a new one, and that connections with a
// request in work stay.
func TestTooManyConnections(t *testing.T) {
	p := &pipes{dialed: make(chan net.Conn, 1)}
	l := newListener(p, limits{open: 3, waiting: 2, idle: time.Hour})
	_, first := p.connect(t, l)
	l.serve(first)
	_, second := p.connect(t, l)
	_, third := p.connect(t, l)
	_, fourth := p.connect(t, l)
	if first.isClosed() || !second.isClosed() || third.isClosed() || fourth.isClosed() {
		t.Errorf("with two waiting: %v %v %v %v", first.isClosed(), second.isClosed(), third.isClosed(), fourth.isClosed())
	}
	l.serve(third)
	l.serve(fourth)
	_, fifth := p.connect(t, l)
	if first.isClosed() || third.isClosed() || fourth.isClosed() || !fifth.isClosed() {
		t.Error("with three requests in work, one of them ends")
	}
	l.wait(first)
	_, sixth := p.connect(t, l)
	if !first.isClosed() || sixth.isClosed() {
		t.Error("a connection that waits again does not give way")
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	l.wait(third)
	if l.waiting.Len() != 1 || len(l.serving) != 1 {
		t.Errorf("%d wait and %d are served after the end of one", l.waiting.Len(), len(l.serving))
	}
	l.end()
	l.wait(fourth)
	_, late := p.connect(t, l)
	if !fourth.isClosed() || !sixth.isClosed() || !late.isClosed() {
		t.Error("the end of the server leaves connections open")
	}
}

// TestIdleConnections checks that a connection without traffic in either direction ends.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{dialed: make(chan net.Conn, 1)}
		l := newListener(p, limits{open: 9, waiting: 9, idle: 4 * time.Hour})
		_, quiet := p.connect(t, l)
		reads, reading := p.connect(t, l)
		writes, writing := p.connect(t, l)
		go io.Copy(io.Discard, reads)   //nolint:errcheck // it ends with the connection
		go io.Copy(io.Discard, writing) //nolint:errcheck // it ends with the connection
		for range 3 {
			time.Sleep(3 * time.Hour)
			_, err := reading.Write([]byte("x"))
			_, otherErr := writes.Write([]byte("x"))
			if err = errors.Join(err, otherErr); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if !quiet.isClosed() || reading.isClosed() || writing.isClosed() {
			t.Errorf("after 9 h: %v %v %v", quiet.isClosed(), reading.isClosed(), writing.isClosed())
		}
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		if !reading.isClosed() || !writing.isClosed() {
			t.Error("idle connections stay open")
		}
	})
}

// raw opens a connection to a server and sends a text.
func (s *served) raw(text string) *tls.Conn {
	s.t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // the certificate is self-signed
	conn, err := dialer.DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if _, err = io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	return conn.(*tls.Conn)
}

// TestConnectionLimit checks the limit on a port: clients that send no request cannot lock others out.
func TestConnectionLimit(t *testing.T) {
	s := serve(t, &pods{}, newRuntime(t), func(_ *Settings, l *limits) { l.waiting = 2 })
	first := s.raw("GET /healthz HTTP/1.1\r\n")
	for range 5 {
		s.raw("GET /healthz HTTP/1.1\r\n")
	}
	if err := first.SetReadDeadline(time.Now().Add(headerTime / 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest connection stays: %v", err)
	}
	s.expect("GET", "/healthz", http.StatusOK, "ok")
}

// TestLargeRequests checks the limits of headers and bodies.
func TestLargeRequests(t *testing.T) {
	agent, m, _ := web(t)
	s := serve(t, agent, m)
	if code, _ := s.do("GET", "/healthz", "", "X-Large", strings.Repeat("x", 2<<20)); code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a large header: %d", code)
	}
	body := "cmd=echo&x=" + strings.Repeat("x", 2<<20)
	code, text := s.do("POST", "/run/ns/web/app", body, "Content-Type", "application/x-www-form-urlencoded")
	if code != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d %q", code, text)
	}
}

// TestProtocols checks that the server speaks HTTP/1.1 with TLS 1.2 or later.
func TestProtocols(t *testing.T) {
	s := serve(t, &pods{}, newRuntime(t))
	dial := func(c *tls.Config) (string, error) {
		c.InsecureSkipVerify = true
		conn, err := (&tls.Dialer{Config: c}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
		if err != nil {
			return "", err
		}
		defer conn.Close() //nolint:errcheck // nothing was written
		return conn.(*tls.Conn).ConnectionState().NegotiatedProtocol, nil
	}
	protocol, err := dial(&tls.Config{NextProtos: []string{"h2", "http/1.1"}}) // see dial
	if err != nil || protocol != "http/1.1" {
		t.Errorf("it speaks %q (%v)", protocol, err)
	}
	_, err = dial(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}) // it is refused
	if err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}

// TestEndOfServer checks that the end of the server ends its streams, also upgraded connections.
func TestEndOfServer(t *testing.T) {
	agent, m, d := web(t)
	m.run(d, "app", "c1", logFile(t, map[string]string{"0.log": line(0, "stdout", "one")}))
	l := defaultLimits()
	l.streams = 2
	server := newServer(agent, m, Settings{Now: time.Now, Log: discard, Certificates: certificates(t), Measures: measures{}, Metrics: measures{}}, l)
	port, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, port) }()
	s := &served{Server: server, t: t, url: "https://" + port.Addr().String()}
	lines := bufio.NewScanner(s.raw("GET /containerLogs/ns/web/app?follow=true HTTP/1.1\r\nHost: x\r\n\r\n"))
	for lines.Scan() && lines.Text() != "one" {
	}
	// If a command outlived the server, this would not end.
	x := executors(t, s.url+"/exec/ns/web/app?command=wait&output=1")["SPDY"]
	_ = x.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: first(stop)})
	for lines.Scan() {
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := server.streams.total.Acquire(t.Context(), 2); err != nil { // It waits for the end of the streams.
		t.Error(err)
	}
}
