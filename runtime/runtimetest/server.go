package runtimetest

import (
	"context"
	"fmt"
	"net"
	"path"
	"slices"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Server is an in-memory container runtime on a real socket. Its containers follow their Behaviour in the time of its
// clock. It answers like containerd, which the contract suite verifies.
type Server struct {
	*store
	grpc   *grpc.Server
	faults []*Fault
}

// runtimeService answers the CRI's calls about sandboxes and containers. Server holds the lock of the store during each
// call.
type runtimeService struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	*store
}

// imageService answers the CRI's calls about images.
type imageService struct {
	runtimeapi.UnimplementedImageServiceServer
	*store
}

// Fault makes calls fail.
type Fault struct {
	// Method is the call's short name, for example StartContainer.
	Method string
	// Times is how many calls fail with Err.
	Times int
	Err   error
	// Afterwards is set if the call does its work and then fails, as if the answer was lost.
	Afterwards bool
	// Hangs is set if the call is not answered until the caller gives up.
	Hangs bool
	// Only selects the requests that fail; nil means all.
	Only func(request any) bool
}

// NewServer listens on a socket. It has all listed images.
func NewServer(ctx context.Context, socket string, clock *Clock, images ...string) (*Server, error) {
	s := &Server{store: &store{
		clock: clock, sandboxes: map[string]*sandbox{}, containers: map[string]*container{},
		images: map[string]*runtimeapi.Image{}, behaviours: map[string][]Behaviour{},
	}}
	for _, name := range images {
		s.addImage(name)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("starting the runtime in memory: %w", err)
	}
	s.grpc = grpc.NewServer(grpc.UnaryInterceptor(s.intercept))
	runtimeapi.RegisterRuntimeServiceServer(s.grpc, &runtimeService{store: s.store})
	runtimeapi.RegisterImageServiceServer(s.grpc, &imageService{store: s.store})
	go s.grpc.Serve(l) //nolint:errcheck // it ends with Close
	return s, nil
}

// Close ends the server.
func (s *Server) Close() { s.grpc.Stop() }

// Behave sets the Behaviour for the next runs of containers with a name, in order. After the last one, they run until
// they are stopped.
func (s *Server) Behave(name string, runs ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behaviours[name] = runs
}

// Fail adds a fault.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// Annotate changes an annotation of all containers with a name, as if by another program.
func (s *Server) Annotate(name, key, value string) {
	s.named(name, func(c *container) { c.status.Annotations[key] = value })
}

// SetNetwork sets the network to not ready with a message, or to ready with an empty one.
func (s *Server) SetNetwork(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notReady = message
}

// SetHandlers adds handlers beside the default one.
func (s *Server) SetHandlers(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers = names
}

// OnExec sets the answer to commands in containers. By default they succeed.
func (s *Server) OnExec(answer func(containerID string, command []string) *runtimeapi.ExecSyncResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = answer
}

// Calls returns the calls that changed state, with their object: "CreateContainer app 2".
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Created returns the requests of all creations.
func (s *Server) Created() Created {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Created{Sandboxes: slices.Clone(s.created.Sandboxes), Containers: slices.Clone(s.created.Containers)}
}

// intercept logs calls, lets containers exit whose time has come, and applies faults.
func (s *Server) intercept(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	method := path.Base(info.FullMethod)
	fault := s.faultFor(method, req)
	if fault != nil && fault.Hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if fault != nil && !fault.Afterwards {
		return nil, fault.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	reply, err := handle(ctx, req)
	if fault != nil {
		return nil, fault.Err
	}
	return reply, err
}

func (s *Server) faultFor(method string, req any) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.Method == method && f.Times > 0 && (f.Only == nil || f.Only(req)) {
			f.Times--
			return f
		}
	}
	return nil
}
