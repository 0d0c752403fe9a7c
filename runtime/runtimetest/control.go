package runtimetest

import (
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Runs reports whether a container runs.
func (s *Server) Runs(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.containers[id]
	return c != nil && c.status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING
}

// named calls visit for the containers with a name.
func (s *Server) named(name string, visit func(*container)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.containers {
		if c.status.GetMetadata().GetName() == name {
			visit(c)
		}
	}
}

// Exit ends a running container with this name, as if by itself or by another program.
func (s *Server) Exit(name string, code int32) {
	s.named(name, func(c *container) { s.exit(c, code, s.now()) })
}

// Write sets the size of a container's writable layer in bytes.
func (s *Server) Write(name string, bytes uint64) {
	s.named(name, func(c *container) { c.written = bytes })
}

// UseMemory sets the memory that a running container uses, in bytes.
func (s *Server) UseMemory(name string, bytes uint64) {
	s.named(name, func(c *container) { c.memory = bytes })
}

// Lose removes all records of a container, as if by another program.
func (s *Server) Lose(name string) {
	s.named(name, func(c *container) { delete(s.containers, c.status.GetId()) })
}

// Forget makes the state of running containers with a name unknown.
func (s *Server) Forget(name string) {
	s.named(name, func(c *container) {
		if c.status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			c.status.State, c.exitAt = runtimeapi.ContainerState_CONTAINER_UNKNOWN, 0
		}
	})
}

// Reboot ends all sandboxes and containers, like a restart of the machine.
func (s *Server) Reboot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.sandboxes {
		one.status.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		one.status.Network = &runtimeapi.PodSandboxNetworkStatus{}
	}
	for _, c := range s.containers {
		s.exit(c, 255, s.now())
	}
}

// NextExit returns the time until the next container exits by itself, or false if none will.
func (s *Server) NextExit() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := int64(0)
	for _, c := range s.containers {
		running := c.status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING
		if running && c.exitAt != 0 && (next == 0 || c.exitAt < next) {
			next = c.exitAt
		}
	}
	return time.Duration(next - s.now()), next != 0
}

// SandboxOf returns the id of a sandbox of the pod with a uid, or an empty string.
func (s *Server) SandboxOf(uid string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, one := range s.sandboxes {
		if one.status.GetMetadata().GetUid() == uid {
			return id
		}
	}
	return ""
}
