package kubernetes

import (
	"net"
	"sync"
	"testing"
	"time"
)

// line is the connection of the node to the API server. It can be slow or silent, or cut off.
type line struct {
	mu      sync.Mutex
	quality quality
	changed chan struct{}
	conns   map[net.Conn]bool
}

// quality describes a line.
type quality struct {
	// delay is how long each part of a message takes.
	delay time.Duration
	// silent lines transport nothing, and closed ones have no connections.
	silent, closed bool
}

// startLine forwards connections from one address to another until the test ends.
func startLine(t *testing.T, from, to string) *line {
	t.Helper()
	l := &line{changed: make(chan struct{}), conns: map[net.Conn]bool{}}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = listener.Close()
		l.set(quality{closed: true})
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(client, to)
		}
	}()
	return l
}

// set changes the line. A closed one ends all its connections.
func (l *line) set(q quality) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quality = q
	close(l.changed)
	l.changed = make(chan struct{})
	if q.closed {
		for c := range l.conns {
			_ = c.Close()
		}
	}
}

// cut ends all connections, and lets the next ones begin.
func (l *line) cut() {
	l.mu.Lock()
	before := l.quality
	l.mu.Unlock()
	l.set(quality{closed: true})
	l.set(before)
}

func (l *line) serve(client net.Conn, to string) {
	server, err := net.Dial("tcp", to) //nolint:noctx // it is local
	if err != nil || !l.add(client, server) {
		_ = client.Close()
		if err == nil {
			_ = server.Close()
		}
		return
	}
	go l.forward(client, server)
	l.forward(server, client)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, client)
	delete(l.conns, server)
}

func (l *line) add(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = true
	}
	return !l.quality.closed
}

// forward copies one direction. When it ends, so does the other.
func (l *line) forward(to, from net.Conn) {
	defer to.Close()   //nolint:errcheck // the other end sees it
	defer from.Close() //nolint:errcheck // the same
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && l.wait() {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// wait waits as long as the line needs for a part of a message. It returns false if the line was closed.
func (l *line) wait() bool {
	for {
		l.mu.Lock()
		q, changed := l.quality, l.changed
		l.mu.Unlock()
		switch {
		case q.closed:
			return false
		case !q.silent:
			time.Sleep(q.delay)
			return true
		}
		<-changed
	}
}
