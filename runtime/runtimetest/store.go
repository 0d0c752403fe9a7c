package runtimetest

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// store is the state of the in-memory runtime. Its methods are called with the lock held.
type store struct {
	clock *Clock

	mu         sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
	images     map[string]*runtimeapi.Image
	behaviours map[string][]Behaviour
	calls      []string
	created    Created
	notReady   string
	handlers   []string
	serial     int
	commands   func(containerID string, command []string) *runtimeapi.ExecSyncResponse
}

// Behaviour defines one run of a container.
type Behaviour struct {
	// After is how long it runs; zero means until it is stopped.
	After    time.Duration
	ExitCode int32
	// Graceful makes it exit with 0 instead of 143 when it is stopped.
	Graceful bool
	// StartError, if set, makes the start fail with this reason.
	StartError string
}

// Created holds the configurations of created objects, in the order of the calls.
type Created struct {
	Sandboxes  []*runtimeapi.PodSandboxConfig
	Containers []*runtimeapi.ContainerConfig
}

func (s *store) log(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

// newID returns a new id in containerd's format.
func (s *store) newID() string {
	s.serial++
	return fmt.Sprintf("%08x%056x", s.serial, s.serial)
}

func (s *store) now() int64 { return s.clock.Now().UnixNano() }

// behaviour returns the Behaviour for the next run of a name.
func (s *store) behaviour(name string) Behaviour {
	runs := s.behaviours[name]
	if len(runs) == 0 {
		return Behaviour{}
	}
	s.behaviours[name] = runs[1:]
	return runs[0]
}

// settle ends containers whose time to exit has come.
func (s *store) settle() {
	for _, c := range s.containers {
		if c.exitAt != 0 && c.exitAt <= s.now() {
			s.exit(c, c.exitCode, c.exitAt)
		}
	}
}

// exit ends a running container.
func (s *store) exit(c *container, code int32, at int64) {
	if c.status.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return
	}
	c.status.State, c.status.FinishedAt, c.status.ExitCode = runtimeapi.ContainerState_CONTAINER_EXITED, at, code
	c.status.Reason = "Error"
	if code == 0 {
		c.status.Reason = "Completed"
	}
	c.exitAt = 0
}

func (s *store) end(one *sandbox) {
	one.status.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	one.status.Network = &runtimeapi.PodSandboxNetworkStatus{}
	for _, c := range s.containers {
		if c.sandboxID == one.status.GetId() {
			s.exit(c, 137, s.now())
		}
	}
}

func (s *store) sandboxName(id string) string {
	if one := s.sandboxes[id]; one != nil {
		return fmt.Sprintf("%s %d", one.status.GetMetadata().GetName(), one.status.GetMetadata().GetAttempt())
	}
	return id
}

func (s *store) addImage(name string) *runtimeapi.Image {
	img := &runtimeapi.Image{Id: "sha256:" + name, RepoTags: []string{name}, Size: 1}
	s.images[img.GetId()] = img
	return img
}

// find returns the image with a name or id.
func (s *store) find(name string) *runtimeapi.Image {
	if img := s.images[name]; img != nil {
		return img
	}
	return s.images["sha256:"+name]
}

func notFound(kind, id string) error {
	return status.Errorf(codes.NotFound, "an error occurred when try to find %s %q: not found", kind, id)
}

// reserved returns containerd's error for a name that is already in use.
func reserved(kind, name, owner string) error {
	return status.Errorf(codes.Unknown,
		"failed to reserve %s name %q: name %q is reserved for %q", kind, name, name, owner)
}
