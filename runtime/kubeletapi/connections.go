package kubeletapi

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podctl/podctl/runtime/kubeletapi/access"
)

// limits protect the process from clients.
type limits struct {
	// open is the maximum number of connections. waiting is the maximum number of those without a request in work: in
	// the handshake, while a request is read or its access is checked, or between two requests.
	open, waiting int
	// streams is the maximum number of logs, commands, attached processes and forwarded ports at the same time.
	streams int
	// lists is the maximum number of lists of pods that are made at the same time. Others wait.
	lists int
	// idle is how long a connection may carry no byte (kubelet: StreamIdleTimeout of its runtime).
	idle time.Duration
}

// defaultLimits leave file descriptors for other uses: a stream needs up to four.
func defaultLimits() limits {
	return limits{open: 512, waiting: 128, streams: 256, lists: 4, idle: 4 * time.Hour}
}

// listener accepts connections within the limits. For each one more it closes one that waits, of the client with most
// of them: if it refused the newest, a client that keeps connections open could lock others out. It never closes a
// connection with a request in work.
type listener struct {
	net.Listener
	limits limits

	mu sync.Mutex
	// waiting holds the connections without a request in work, the longest waiting first. serving holds the others.
	waiting list.List
	serving map[*connection]bool
	ended   bool
}

func newListener(l net.Listener, limits limits) *listener {
	return &listener{Listener: l, limits: limits, serving: map[*connection]bool{}}
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: conn, listener: l, origin: access.Origin(conn.RemoteAddr().String())}
	c.used.Store(time.Now().UnixNano())
	c.mu.Lock()
	c.timer = time.AfterFunc(l.limits.idle, c.checkIdle)
	c.mu.Unlock()
	l.wait(c)
	return c, nil
}

// wait records that a connection has no request in work. If there are too many, it closes one.
func (l *listener) wait(c *connection) {
	l.mu.Lock()
	delete(l.serving, c)
	var extra *connection
	switch {
	case l.ended:
		extra = c
	case !c.closed:
		c.place = l.waiting.PushBack(c)
		if l.waiting.Len() > l.limits.waiting || l.waiting.Len()+len(l.serving) > l.limits.open {
			extra = l.crowding()
		}
	}
	l.mu.Unlock()
	if extra != nil {
		_ = extra.Close() // The client sees the end of the connection.
	}
}

// crowding returns the connection that gives way to others: the longest waiting one of the client that has most of
// them. The caller holds the lock.
func (l *listener) crowding() (found *connection) {
	counts, most := map[netip.Addr]int{}, 0
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		origin := e.Value.(*connection).origin // the list holds nothing else
		counts[origin]++
		most = max(most, counts[origin])
	}
	for e := l.waiting.Back(); e != nil; e = e.Prev() {
		if c := e.Value.(*connection); counts[c.origin] == most {
			found = c
		}
	}
	return found
}

// serve records that a request of a connection is in work.
func (l *listener) serve(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(c)
	if !c.closed {
		l.serving[c] = true
	}
}

// forget removes a connection from the lists. The caller holds the lock.
func (l *listener) forget(c *connection) {
	if c.place != nil {
		l.waiting.Remove(c.place)
		c.place = nil
	}
	delete(l.serving, c)
}

// end closes all connections, also those that were upgraded. The HTTP server does not know these any more.
func (l *listener) end() {
	l.mu.Lock()
	l.ended = true
	var all []*connection
	for c := range l.serving {
		all = append(all, c)
	}
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*connection)) // the list holds nothing else
	}
	l.mu.Unlock()
	for _, c := range all {
		_ = c.Close() // The client sees the end of the connection.
	}
}

// connection is a connection that is closed when it carried no byte for a time.
type connection struct {
	net.Conn
	listener *listener
	// origin is the address of the client for limits.
	origin netip.Addr
	// place is the connection's place among the waiting ones. closed is set when it was closed. The listener's lock
	// guards both.
	place  *list.Element
	closed bool
	// used is the time of the last byte, in nanoseconds.
	used atomic.Int64
	// mu guards timer.
	mu    sync.Mutex
	timer *time.Timer
}

// Read reads from the client.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.used.Store(time.Now().UnixNano())
	}
	return n, err
}

// Write writes to the client.
func (c *connection) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.used.Store(time.Now().UnixNano())
	}
	return n, err
}

// Close closes the connection.
func (c *connection) Close() error {
	c.listener.mu.Lock()
	c.closed = true
	c.listener.forget(c)
	c.listener.mu.Unlock()
	c.mu.Lock()
	c.timer.Stop()
	c.mu.Unlock()
	return c.Conn.Close()
}

// checkIdle closes an idle connection, or checks again when it could be idle.
func (c *connection) checkIdle() {
	idle := time.Since(time.Unix(0, c.used.Load()))
	if idle >= c.listener.limits.idle {
		_ = c.Close() // The client sees the end of the connection.
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Reset(c.listener.limits.idle - idle)
}

// connectionKey is the key of a request's connection in its context.
type connectionKey struct{}

// withConnection adds the connection to the contexts of its requests.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// connectionOf returns the connection of a request, or nil in tests without one.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}
