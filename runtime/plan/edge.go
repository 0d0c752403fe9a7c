package plan

import "slices"

// Phase is a part of a step that can wait on its own.
type Phase int

// The phases of a step.
const (
	// Begin is the step as a whole.
	Begin Phase = iota
	// Create is the creation of a replacement. It can run before the start and beside the stop of the container that it
	// replaces. A start without such edges creates its container when it starts.
	Create
	// Stop is the signal to a sidecar, after its preStop hook. It comes late because other containers use the sidecar
	// until they end. It waits no longer than the sidecar's grace period (kubelet: terminationOrdering).
	Stop
)

// Until is the state that a step must reach before another one may continue.
type Until int

// The states of a step that others wait for.
const (
	// Done means that the step has ended.
	Done Until = iota
	// Exited means that the last process of the stopped container has ended. A replacement may then start while the
	// runtime still cleans up. If podctl cannot see the processes, the end of the step counts.
	Exited
)

// Edge names a step that another one waits for.
type Edge struct {
	Step string
	// Phase is the part of the waiting step that waits.
	Phase Phase
	Until Until
}

// Needs are the edges of a step, in the order in which documents list them.
type Needs []Edge

// After returns edges to steps that must end before a step begins.
func After(ids ...string) Needs { return after(ids) }

// after is After for lists of steps.
func after(lists ...[]string) Needs {
	return Needs(nil).with(Edge{}, slices.Concat(lists...))
}

// Of returns the edges of one phase of a step.
func (n Needs) Of(phase Phase) Needs {
	return n.where(func(e Edge) bool { return e.Phase == phase })
}

// AwaitsExit reports whether a part of a step waits for the exit of the container that another one stops.
func (n Needs) AwaitsExit(stop string) bool {
	return slices.ContainsFunc(n, func(e Edge) bool { return e.Step == stop && e.Until == Exited })
}

// with adds edges of one kind to some steps. It leaves out empty IDs, and steps that the same phase already waits for.
func (n Needs) with(kind Edge, ids []string) Needs {
	for _, id := range ids {
		known := slices.ContainsFunc(n, func(e Edge) bool { return e.Step == id && e.Phase == kind.Phase })
		if id != "" && !known {
			kind.Step = id
			n = append(n, kind)
		}
	}
	return n
}

func (n Needs) where(match func(Edge) bool) Needs {
	var some Needs
	for _, e := range n {
		if match(e) {
			some = append(some, e)
		}
	}
	return some
}

func (n Needs) steps() []string {
	var ids []string
	for _, e := range n {
		ids = append(ids, e.Step)
	}
	return ids
}
