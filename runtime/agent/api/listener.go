package api

import (
	"container/list"
	"net"
	"sync"
)

// The connections of the port and of the owner's socket, so that descriptors remain for everything else: a process usually has 1,024.
const (
	maxConnections = 64
	ownConnections = 256
)

// bounded accepts at most a number of connections at a time. For each one more it closes the oldest: to refuse the newest would let
// whoever keeps connections open lock others out.
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
		oldest = b.open.Front().Value.(*counted) //nolint:forcetypeassert // there is nothing else in the list
	}
	b.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // Its client sees the end of the connection.
	}
	return c, nil
}
