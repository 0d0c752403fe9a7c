package cgroup

// Cgroups are the control groups of pods, by their paths.
type Groups interface {
	Ensure(name string, r Resources) error
	Exists(name string) bool
	Remove(name string) error
	Occupants(pods []string, containerID string, first int) (Processes, bool)
}

// Occupants are the processes of a container, watched until Close.
type Processes interface {
	Left() bool
	Close()
}

// machineCgroups are those of the machine.
type Machine struct{}

func (Machine) Ensure(name string, r Resources) error { return Ensure(name, r) }

func (Machine) Exists(name string) bool { return Exists(name) }

func (Machine) Remove(name string) error { return Remove(name) }

func (Machine) Occupants(pods []string, containerID string, first int) (Processes, bool) {
	return FindOccupants(pods, containerID, first)
}
