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

// Listener is notified of what an agent does. The log, the metrics and the pod lists of the agent are listeners. A
// listener must not change the agent and must not block. The loop calls it, except for Stepped.
type Listener func(ctx context.Context, e *Event)

// EventKind is the kind of an Event.
type EventKind int

// The kinds of events.
const (
	// Stepped is a step of a running pass. It is reported from the goroutine of the pass, not from the loop.
	Stepped EventKind = iota
	// Planned is a plan of a running pass that starts no container, or that again starts one.
	Planned
	// Passed is the end of a pass.
	Passed
	// Probed is a probe result that was written, or could not be written.
	Probed
	// Ended is the end of a pod: all its parts are removed.
	Ended
)

// Event is an action of an agent.
type Event struct {
	Kind EventKind
	Pod  model.PodRef
	// Step is the step of a Stepped event.
	Step executor.Event
	// Outcome is the result of a pass with its observations. It is nil if the pass could not be made.
	Outcome *executor.Outcome
	// Changed reports whether a pass has, or may have, changed its pod, or has found another phase or readiness than
	// the pass before.
	Changed bool
	// pass is the pass that has ended.
	pass *passResult
}

func (s *loopState) notify(ctx context.Context, e *Event) {
	for _, listen := range s.listeners {
		listen(ctx, e)
	}
}

// finding is the part of a pod's status that other programs may wait for.
type finding struct {
	phase v1.PodPhase
	ready bool
}

// found returns the phase and readiness that a pass has found. It is zero if they are unknown.
func (p *passResult) found(now time.Time) (f finding) {
	if p.outcome == nil || p.outcome.Input == nil || p.pod() == nil {
		return f
	}
	input := &podstatus.Input{Desired: p.pod(), Observed: p.outcome.Input.Observed, Now: now}
	status := podstatus.Of(podstatus.New(input))
	f.phase = status.Phase
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == v1.PodReady {
			f.ready = c.Status == v1.ConditionTrue
		}
	}
	return f
}

// hasChanged reports whether a pass has, or may have, changed its pod.
func (p *passResult) hasChanged() bool {
	return p.err != nil || p.pass.Kind != podworkers.Sync || p.result().Pending
}
