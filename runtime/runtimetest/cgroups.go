package runtimetest

import (
	"context"
	"sync"

	"github.com/podctl/podctl/runtime/cgroup"
)

// Cgroups are in-memory cgroups of pods. Their processes are the containers that run in a Server.
type Cgroups struct {
	server *Server

	mu      sync.Mutex
	names   map[string]bool
	members map[string][]int
	usage   map[string]cgroup.Usage
	// err is the result of Ensure and Remove.
	err error
}

// NewCgroups returns Cgroups for the containers of a Server.
func NewCgroups(server *Server) *Cgroups {
	return &Cgroups{
		server: server, names: map[string]bool{}, members: map[string][]int{}, usage: map[string]cgroup.Usage{},
	}
}

// Fail makes every later change fail; nil ends that.
func (c *Cgroups) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// Ensure creates a cgroup.
func (c *Cgroups) Ensure(name string, _ cgroup.Resources) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.names[name] = true
	}
	return c.err
}

// Exists reports whether a cgroup was created.
func (c *Cgroups) Exists(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names[name]
}

// Remains is Exists, because there are no parts.
func (c *Cgroups) Remains(name string) bool { return c.Exists(name) }

// Remove removes a cgroup without processes.
func (c *Cgroups) Remove(_ context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pids := c.members[name]; c.err == nil && len(pids) > 0 {
		return &cgroup.BusyError{Path: name, PIDs: pids}
	}
	if c.err == nil {
		delete(c.names, name)
	}
	return c.err
}

// Destroy removes a cgroup with its processes, unless they are used.
func (c *Cgroups) Destroy(ctx context.Context, name, _ string, unused func() error) error {
	if err := unused(); err != nil {
		return err
	}
	c.Occupy(name)
	return c.Remove(ctx, name)
}

// Occupy sets the processes that Members returns for a cgroup.
func (c *Cgroups) Occupy(name string, pids ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[name] = pids
}

// Members returns the processes set by Occupy.
func (c *Cgroups) Members(name string) ([]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[name], nil
}

// Use sets the usage that Usage returns for a cgroup.
func (c *Cgroups) Use(name string, usage cgroup.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usage[name] = usage
}

// Usage returns the usage set by Use.
func (c *Cgroups) Usage(name string) (cgroup.Usage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usage[name], nil
}

// Occupants returns the processes of a container.
func (c *Cgroups) Occupants(_ []string, id string, _ int) (cgroup.Processes, bool) {
	return occupants{c.server, id}, true
}

type occupants struct {
	server *Server
	id     string
}

// Left reports whether the container runs.
func (o occupants) Left() bool { return o.server.Runs(o.id) }

// Close does nothing.
func (occupants) Close() {}
