package plan

import "slices"

// Phase is a part of a step that may have to wait by itself.
type Phase int

// The parts of a step that wait.
const (
	// Begin is the step as a whole.
	Begin Phase = iota
	// Create is the creation of a replacement, which comes before the start's turn: beside
	// the stop of the container it replaces. A start without such needs creates when it
	// starts.
	Create
	// Stop is the signal to a sidecar, after its preStop hook: it is of use to others to
	// the last. It waits no longer than its grace period (kubelet: terminationOrdering).
	Stop
)

// Until is how far a step must have come for those that wait for it.
type Until int

// How far a step must have come.
const (
	// Done is its end.
	Done Until = iota
	// Exited is the moment at which no process is left of the container that it stops: a
	// replacement may start while the runtime still clears up. Where that cannot be seen
	// the stop has to end.
	Exited
)

// Edge is one step that another one waits for.
type Edge struct {
	Step string
	// Phase is the part of the other step that waits.
	Phase Phase
	Until Until
}

// Needs are the edges of a step, in the order in which documents list them.
type Needs []Edge

// After lets a step begin after others have ended.
func After(ids ...string) Needs { return after(ids) }

// after does so for lists of steps.
func after(lists ...[]string) Needs {
	return Needs(nil).with(Edge{}, slices.Concat(lists...))
}

// Of are the needs of one part of a step: all that has to happen before it begins.
func (n Needs) Of(phase Phase) Needs {
	return n.where(func(e Edge) bool { return e.Phase == phase })
}

// AwaitsExit reports whether a part of a step waits for the exit of what another one stops.
func (n Needs) AwaitsExit(stop string) bool {
	return slices.ContainsFunc(n, func(e Edge) bool { return e.Step == stop && e.Until == Exited })
}

// with adds edges of one kind to some steps. Ids that are empty are left out, and so are
// steps that the same part waits for already.
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
