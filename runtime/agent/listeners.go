package agent

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// Listener is notified of what an agent does: its log, its metrics and its lists of pods are listeners. A listener changes nothing of
// the agent, and must not wait. Except for Stepped, the loop calls it.
type Listener func(ctx context.Context, e *Event)

// EventKind is what has happened.
type EventKind int

// The kinds of events.
const (
	// Stepped is a step of a pass that runs, reported from beside the loop.
	Stepped EventKind = iota
	// Passed is the end of a pass.
	Passed
	// Probed is an answer of a probe that was written, or could not be.
	Probed
	// Ended is the end of a pod: nothing is left of it.
	Ended
)

// Event is something that an agent has done.
type Event struct {
	Kind EventKind
	Pod  model.PodRef
	// Step is the step of a Stepped event.
	Step executor.Event
	// Outcome is the result of a pass, with what it observed; nil if the pass could not be made.
	Outcome *executor.Outcome
	// Changed reports whether a pass has, or may have, changed its pod, or found it in another phase or readiness than the one
	// before.
	Changed bool
	// pass is the pass that has ended.
	pass *passed
}

func (s *loopState) notify(ctx context.Context, e *Event) {
	for _, hear := range s.listeners {
		hear(ctx, e)
	}
}

// finding is what others may wait for of a pod.
type finding struct {
	phase v1.PodPhase
	ready bool
}

// found is how a pass has found its pod; zero if that is not known.
func (p *passed) found(now time.Time) (f finding) {
	if p.outcome == nil || p.outcome.Input == nil || p.pod() == nil {
		return f
	}
	status := podstatus.Of(podstatus.New(&podstatus.Input{Desired: p.pod(), Observed: p.outcome.Input.Observed, Now: now}))
	f.phase = status.Phase
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == v1.PodReady {
			f.ready = c.Status == v1.ConditionTrue
		}
	}
	return f
}

// hasChanged reports whether a pass has, or may have, changed something of its pod.
func (p *passed) hasChanged() bool {
	return p.err != nil || p.pass.Kind != podworkers.Sync || p.result().Pending
}
