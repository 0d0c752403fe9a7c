package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Proxy stands between a client and a container runtime, passes every call on as
// it is unless it was told to disturb it, and records the methods that were called.
type Proxy struct {
	server *grpc.Server
	conn   *grpc.ClientConn

	mu    sync.Mutex
	calls []string
	// disturbances wait for their calls.
	disturbances []*Disturbance
	// broken is closed when the calls that are under way shall break off.
	broken chan struct{}
}

// StartProxy listens on a socket and passes calls on to the runtime behind
// another one.
func StartProxy(ctx context.Context, listen, upstream string) (*Proxy, error) {
	conn, err := grpc.NewClient("unix://"+upstream,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
	if err != nil {
		return nil, fmt.Errorf("connecting the proxy: %w", err)
	}
	p := &Proxy{conn: conn, broken: make(chan struct{})}
	p.server = grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(p.call))
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", listen)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the proxy: %w", err), conn.Close())
	}
	go p.server.Serve(l) //nolint:errcheck // it ends with Close
	return p, nil
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	p.server.Stop()
	return p.conn.Close()
}

// Break ends all calls that are under way, streams of events too, as when a connection breaks. What the runtime was
// asked to do it may have done.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.broken)
	p.broken = make(chan struct{})
}

// Calls lists the methods that were called, by their short names, in order.
func (p *Proxy) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Reset forgets the calls so far.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

// Writes lists the calls that change something.
func (p *Proxy) Writes() []string {
	return slices.DeleteFunc(p.Calls(), func(method string) bool {
		for _, reads := range []string{"List", "Status", "Version", "RuntimeConfig", "ImageFsInfo", "GetContainerEvents"} {
			if strings.HasPrefix(method, reads) || strings.HasSuffix(method, reads) {
				return true
			}
		}
		return false
	})
}

// record notes a call, and returns what shall happen to it, and what is closed when it shall break off.
func (p *Proxy) record(method string) (*Disturbance, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, path.Base(method))
	for i, d := range p.disturbances {
		if d.meets(path.Base(method)) {
			p.disturbances = slices.Delete(p.disturbances, i, i+1)
			return d, p.broken
		}
	}
	return nil, p.broken
}

// call is one call of a client, which may break off.
func (p *Proxy) call(_ any, from grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(from)
	if !ok {
		return errors.New("a call without a method")
	}
	d, broken := p.record(method)
	answered := make(chan error, 1)
	go func() { answered <- p.pass(d, method, from) }()
	select {
	case err := <-answered:
		return err
	case <-broken:
		return status.Error(codes.Unavailable, "the connection broke on demand")
	}
}

// pass hands one call on, whatever it is.
func (p *Proxy) pass(d *Disturbance, method string, from grpc.ServerStream) error {
	ctx := from.Context()
	if err := d.before(ctx); err != nil {
		return err
	}
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md.Copy())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	to, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		if err := forward(from, to); err == nil {
			to.CloseSend() //nolint:errcheck // the answer tells
		}
	}()
	if d == nil {
		return forward(to, from)
	}
	return d.after(to, from)
}

// stream is either end of a call.
type stream interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

// forward passes messages on until there are no more.
func forward(from, to stream) error {
	for {
		var m raw
		if err := from.RecvMsg(&m); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := to.SendMsg(&m); err != nil {
			return err
		}
	}
}

// raw is a message that nobody looks into.
type raw struct{ data []byte }

// rawCodec leaves messages as they are.
type rawCodec struct{}

// Marshal returns the bytes of a raw message.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*raw)
	if !ok {
		return nil, fmt.Errorf("cannot pass on a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(m.data)}, nil
}

// Unmarshal keeps the bytes.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*raw)
	if !ok {
		return fmt.Errorf("cannot pass on a %T", v)
	}
	m.data = data.Materialize()
	return nil
}

// Name is the name under which both sides know the encoding.
func (rawCodec) Name() string { return "proto" }
