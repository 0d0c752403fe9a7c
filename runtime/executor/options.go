package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// ErrOutdated is the cancellation cause of a pass that ends early because the desired state of its pod has changed.
var ErrOutdated = fmt.Errorf("the desired state of the pod has changed: %w", context.Canceled)

// Options are the options of a pass.
type Options struct {
	plan.Options
	// Report receives an event when a step begins or ends; it may be nil. It is called from several goroutines, one at
	// a time.
	Report func(Event)
	// Downloads also reports the progress of pulls. It queries containerd several times a second.
	Downloads bool
	// Pulling is called when a pull begins. The function it returns is called after the pull, and the pass waits for
	// it. Its error ends the step. Pulling may be nil.
	Pulling func() (ended func(context.Context) error)
	// AllowKubelet executes the plan even if a kubelet uses the same runtime. A kubelet kills every pod that it does
	// not know.
	AllowKubelet bool
	// ClusterPods allows a pass over a pod of the API server. Without it, the pass ends with a *ClusterPodError before
	// planning, so that a command cannot change such a pod by mistake.
	ClusterPods bool
	// Watched is set by a caller that runs a pass after each event of the pod. If its context ends for another cause
	// than ErrOutdated, a container whose postStart hook runs is left to the next pass, as by a kubelet that exits.
	//
	// Watched also records when conditions of the pod change. A caller that does not watch the pod cannot know the
	// time.
	Watched bool
	// Warnings become events of the pod, each once since its time.
	Warnings []PodWarning
	// Only limits a deletion to the pod of this manifest. If the pod was changed or deleted meanwhile, the pass ends
	// with a *SupersededError. Nil deletes any pod.
	Only *podspec.Desired
	// Precondition is called with the checkpoint once the pod is locked and observed. Its error ends the pass before
	// planning. It may be nil.
	Precondition func(*state.Checkpoint) error
	// Saved is the plan to execute, if it still fits; nil makes a new one.
	Saved *plan.Plan
	// Begun is called once the intended changes are recorded; it may be nil.
	Begun func()
	// Debug is the container that a plan of Debug starts; usually nil.
	Debug *v1.EphemeralContainer
	// Planned receives every plan before it is executed; it may be nil.
	Planned func(*plan.Plan)
}

// Outcome is the result of a pass.
type Outcome struct {
	// Plan is the last executed plan, and Input its input. The pass does not change the input.
	Plan  *plan.Plan
	Input *plan.Input
	// Unchanged reports whether the pass had nothing to do and nothing to record: the input is still valid.
	Unchanged bool
	// Desired is the pod that the plan applies. If an edit is not admitted, it is the pod as applied before.
	Desired *podspec.Desired
	// Failed lists the steps that failed, Skipped those that did not begin.
	Failed  []StepError
	Skipped []*plan.Step
}

// Err joins the failures of the pass; nil if every step was done.
func (o *Outcome) Err() error {
	errs := make([]error, 0, len(o.Failed))
	for i := range o.Failed {
		errs = append(errs, &o.Failed[i])
	}
	return errors.Join(errs...)
}

// PodWarning is a warning about a pod. It leads to no step.
type PodWarning struct {
	// Reason is the reason of the event, one word.
	Reason, Text string
	// Since is when the condition was first seen.
	Since time.Time
}
