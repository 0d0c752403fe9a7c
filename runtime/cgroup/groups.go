package cgroup

import "context"

// Groups are the control groups of pods, by their paths.
type Groups interface {
	Ensure(name string, r Resources) error
	Exists(name string) bool
	Remains(name string) bool
	Remove(ctx context.Context, name string) error
	Members(name string) ([]int, error)
	Occupants(pods []string, containerID string, first int) (Processes, bool)
}

// Processes are the processes of a container, watched until Close.
type Processes interface {
	Left() bool
	Close()
}

// Machine are those of the machine.
type Machine struct{}

// Ensure is the function of that name.
func (Machine) Ensure(name string, r Resources) error { return Ensure(name, r) }

// Exists is the function of that name.
func (Machine) Exists(name string) bool { return Exists(name) }

// Remains is the function of that name.
func (Machine) Remains(name string) bool { return Remains(name) }

// Remove is the function of that name.
func (Machine) Remove(ctx context.Context, name string) error { return Remove(ctx, name) }

// Members is the function of that name.
func (Machine) Members(name string) ([]int, error) { return Members(name) }

// Occupants is FindOccupants.
func (Machine) Occupants(pods []string, containerID string, first int) (Processes, bool) {
	return FindOccupants(pods, containerID, first)
}
