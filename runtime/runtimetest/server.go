package runtimetest

import (
	"context"
	"fmt"
	"net"
	"path"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Server is a container runtime in memory, on a real socket. Its containers do
// what they are told, in the time of its clock. It answers as containerd does,
// which the contract suite holds it to.
type Server struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer

	clock *Clock
	grpc  *grpc.Server

	mu         sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
	images     map[string]*runtimeapi.Image
	behaviours map[string][]Behaviour
	faults     []*Fault
	calls      []string
	created    Created
	notReady   string
	serial     int
	commands   func(containerID string, command []string) *runtimeapi.ExecSyncResponse
}

// Behaviour is what one run of a container does.
type Behaviour struct {
	// After is how long it runs; zero means until it is stopped.
	After    time.Duration
	ExitCode int32
	// StartError, if it is set, is why the start fails, which is the end of the run.
	StartError string
}

// Fault makes calls fail.
type Fault struct {
	// Method is the call's short name, for example StartContainer.
	Method string
	// Times is how many calls fail; they fail with Err.
	Times int
	Err   error
	// Afterwards tells that the call does its work and then fails, as when the
	// answer is lost.
	Afterwards bool
	// Only picks the requests that fail; nil means all.
	Only func(request any) bool
}

// NewServer listens on a socket. Every image in images is present.
func NewServer(ctx context.Context, socket string, clock *Clock, images ...string) (*Server, error) {
	s := &Server{
		clock: clock, sandboxes: map[string]*sandbox{}, containers: map[string]*container{},
		images: map[string]*runtimeapi.Image{}, behaviours: map[string][]Behaviour{},
	}
	for _, name := range images {
		s.addImage(name)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("starting the runtime in memory: %w", err)
	}
	s.grpc = grpc.NewServer(grpc.UnaryInterceptor(s.intercept))
	runtimeapi.RegisterRuntimeServiceServer(s.grpc, s)
	runtimeapi.RegisterImageServiceServer(s.grpc, s)
	go s.grpc.Serve(l) //nolint:errcheck // it ends with Close
	return s, nil
}

// Close ends the server.
func (s *Server) Close() { s.grpc.Stop() }

// Behave tells what the next runs of the containers of a name do, one after the
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.containers {
		if c.status.GetMetadata().GetName() == name {
			c.status.Annotations[key] = value
		}
	}
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

// Created are the messages with which things were made, in the order of the
// calls.
type Created struct {
	Sandboxes  []*runtimeapi.PodSandboxConfig
	Containers []*runtimeapi.ContainerConfig
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

func (s *Server) log(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

// newID is a new id in the form of containerd's.
func (s *Server) newID() string {
	s.serial++
	return fmt.Sprintf("%08x%056x", s.serial, s.serial)
}

func (s *Server) now() int64 { return s.clock.Now().UnixNano() }

// Version names the runtime.
func (s *Server) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "memory", RuntimeVersion: "1", RuntimeApiVersion: "v1"}, nil
}

// Status tells whether the network is ready.
func (s *Server) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	network := &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Status: s.notReady == "", Message: s.notReady}
	return &runtimeapi.StatusResponse{
		Status:          &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{{Type: runtimeapi.RuntimeReady, Status: true}, network}},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Name: ""}},
	}, nil
}

// RuntimeConfig tells the cgroup driver.
func (s *Server) RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
}

func notFound(kind, id string) error {
	return status.Errorf(codes.NotFound, "an error occurred when try to find %s %q: not found", kind, id)
}

// reserved is containerd's answer to a name that is taken.
func reserved(kind, name, owner string) error {
	return status.Errorf(codes.Unknown, "failed to reserve %s name %q: name %q is reserved for %q", kind, name, name, owner)
}
