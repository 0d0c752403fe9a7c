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

// Server is a container runtime in memory, on a real socket, as a test sees it. Its containers
// do what they are told, in the time of its clock. It answers as containerd does, which the
// contract suite holds it to.
type Server struct {
	*store
	grpc   *grpc.Server
	faults []*Fault
}

// runtimeService answers the CRI's calls about sandboxes and containers. Server holds the lock
// of the store during each call.
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
	// Times is how many calls fail; they fail with Err.
	Times int
	Err   error
	// Afterwards is set where the call does its work and then fails, as when the
	// answer is lost.
	Afterwards bool
	// Hangs is set where the call gets no answer as long as the caller waits for one.
	Hangs bool
	// Only picks the requests that fail; nil means all.
	Only func(request any) bool
}

// NewServer listens on a socket. Every image in images is present.
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

// Behave sets what the next runs of the containers of a name do, one after the
// other; after the last one they run until they are stopped.
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

// Annotate changes an annotation of all containers of a name, as if another program had
// written it.
func (s *Server) Annotate(name, key, value string) {
	s.named(name, func(c *container) { c.status.Annotations[key] = value })
}

// SetNetwork makes the network not ready with a message, or ready with none.
func (s *Server) SetNetwork(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notReady = message
}

// OnExec answers the commands run in containers; without it they all succeed.
func (s *Server) OnExec(answer func(containerID string, command []string) *runtimeapi.ExecSyncResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = answer
}

// Calls lists the calls so far that change something, with what they were about:
// "CreateContainer app 2".
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Created lists what was made so far.
func (s *Server) Created() Created {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Created{Sandboxes: slices.Clone(s.created.Sandboxes), Containers: slices.Clone(s.created.Containers)}
}

// intercept logs, lets exits happen whose time has come, and fails what shall
// fail.
func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
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
