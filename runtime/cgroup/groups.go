package cgroup

import "context"

// Groups manages the control groups of pods by their paths.
type Groups interface {
	Ensure(name string, r Resources) error
	Exists(name string) bool
	Remains(name string) bool
	Remove(ctx context.Context, name string) error
	Destroy(ctx context.Context, name, socket string, unused func() error) error
	Members(name string) ([]int, error)
	Usage(name string) (Usage, error)
	Occupants(pods []string, containerID string, first int) (Processes, bool)
}

// Processes are the processes of a container, watched until Close.
type Processes interface {
	Left() bool
	Close()
}

// Machine is the Groups of the machine.
type Machine struct{}
