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

// Proxy passes calls of a client on to a container runtime, disturbs them on request, and records the methods.
type Proxy struct {
	server *grpc.Server
	conn   *grpc.ClientConn

	mu    sync.Mutex
	calls []string
	// disturbances are waiting for their calls.
	disturbances []*Disturbance
	// broken is closed to interrupt the current calls.
	broken chan struct{}
}

// StartProxy listens on a socket and passes calls on to the runtime at upstream.
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

// Break ends all current calls, including streams of events, like a broken connection. The runtime may have executed
// them.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.broken)
	p.broken = make(chan struct{})
}

// Calls returns the short names of the called methods in order.
func (p *Proxy) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Reset removes the recorded calls.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

// Writes returns the calls that change state.
func (p *Proxy) Writes() []string {
	queries := []string{"List", "Status", "Version", "RuntimeConfig", "ImageFsInfo", "GetContainerEvents"}
	return slices.DeleteFunc(p.Calls(), func(method string) bool {
		for _, reads := range queries {
			if strings.HasPrefix(method, reads) || strings.HasSuffix(method, reads) {
				return true
			}
		}
		return false
	})
}

// record records a call. It returns its disturbance, and the channel that is closed to interrupt it.
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

// call handles one call of a client until it ends or is interrupted.
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

// pass passes one call on.
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

// raw is a message that is not decoded.
type raw struct{ data []byte }

// rawCodec does not change messages.
type rawCodec struct{}

// Marshal returns the bytes of a raw message.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*raw)
	if !ok {
		return nil, fmt.Errorf("cannot pass on a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(m.data)}, nil
}

// Unmarshal stores the bytes.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*raw)
	if !ok {
		return fmt.Errorf("cannot pass on a %T", v)
	}
	m.data = data.Materialize()
	return nil
}

// Name is the name of the encoding for both sides.
func (rawCodec) Name() string { return "proto" }
