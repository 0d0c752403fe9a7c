package api

import (
	"container/list"
	"net"
	"sync"
)

// The limits of connections on the port and on the owner's socket. They leave file descriptors for other uses: a
// process usually has 1,024.
const (
	maxConnections = 64
	ownConnections = 256
)

// bounded accepts at most max connections at a time. For each one more it closes the oldest: if it refused the newest,
// a client that keeps connections open could lock others out.
type bounded struct {
	net.Listener
	max int

	mu   sync.Mutex
	open list.List // of *counted, the oldest first
}

// counted is a connection that is removed from the list when it is closed.
type counted struct {
	net.Conn
	closed func()
	once   sync.Once
}

// Close closes the connection.
func (c *counted) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}

// Accept waits for a connection.
func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &counted{Conn: conn}
	b.mu.Lock()
	at := b.open.PushBack(c)
	c.closed = func() {
		b.mu.Lock()
		b.open.Remove(at)
		b.mu.Unlock()
	}
	var oldest *counted
	if b.open.Len() > b.max {
		oldest = b.open.Front().Value.(*counted) // the list holds nothing else
	}
	b.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // The client sees the end of the connection.
	}
	return c, nil
}
