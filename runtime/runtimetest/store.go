package runtimetest

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// store is what the runtime in memory holds. Its methods are called with the lock held.
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
	serial     int
	commands   func(containerID string, command []string) *runtimeapi.ExecSyncResponse
}

// Behaviour is what one run of a container does.
type Behaviour struct {
	// After is how long it runs; zero means until it is stopped.
	After    time.Duration
	ExitCode int32
	// Graceful ends with 0 when it is stopped, and not with 143.
	Graceful bool
	// StartError, if it is set, is why the start fails, which is the end of the run.
	StartError string
}

// Created are the messages with which things were made, in the order of the
// calls.
type Created struct {
	Sandboxes  []*runtimeapi.PodSandboxConfig
	Containers []*runtimeapi.ContainerConfig
}

func (s *store) log(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

// newID is a new id in the form of containerd's.
func (s *store) newID() string {
	s.serial++
	return fmt.Sprintf("%08x%056x", s.serial, s.serial)
}

func (s *store) now() int64 { return s.clock.Now().UnixNano() }

// behaviour is what the next run of a name does.
func (s *store) behaviour(name string) Behaviour {
	runs := s.behaviours[name]
	if len(runs) == 0 {
		return Behaviour{}
	}
	s.behaviours[name] = runs[1:]
	return runs[0]
}

// settle lets containers exit whose time has come.
func (s *store) settle() {
	for _, c := range s.containers {
		if c.exitAt != 0 && c.exitAt <= s.now() {
			s.exit(c, c.exitCode, c.exitAt)
		}
	}
}

// exit ends a container that runs.
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

// find is the image of a name or id.
func (s *store) find(name string) *runtimeapi.Image {
	if img := s.images[name]; img != nil {
		return img
	}
	return s.images["sha256:"+name]
}

func notFound(kind, id string) error {
	return status.Errorf(codes.NotFound, "an error occurred when try to find %s %q: not found", kind, id)
}

// reserved is containerd's answer to a name that is taken.
func reserved(kind, name, owner string) error {
	return status.Errorf(codes.Unknown, "failed to reserve %s name %q: name %q is reserved for %q", kind, name, name, owner)
}
