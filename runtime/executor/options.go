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

// ErrOutdated is the cause with which the context of a pass ends that is cut short because something else is wanted of
// its pod.
var ErrOutdated = fmt.Errorf("something else is wanted of the pod: %w", context.Canceled)

// Options are the user's wishes for a pass.
type Options struct {
	plan.Options
	// Report is told of every step as it begins and ends; it may be nil. It is
	// called from several goroutines, one at a time.
	Report func(Event)
	// Downloads reports also how far pulls are, which asks containerd several times a second.
	Downloads bool
	// Pulling is called when a pull begins. What it returns is called when the pull has ended, and
	// lets the pass go on; its error ends the step. Nil does nothing.
	Pulling func() (ended func(context.Context) error)
	// AllowKubelet lets a pass do what its plan says although a kubelet, which kills every
	// pod that it does not know, uses the same runtime.
	AllowKubelet bool
	// Watched is set by who looks at the pod again whenever something happens to it. If its context ends, and not because of
	// ErrOutdated, a container whose postStart hook runs is left to the next one, as a kubelet that ends leaves it.
	// Watched also writes down when conditions of the pod change, for somebody who looks at it whenever
	// something happens to it. Nobody else knows when it was.
	Watched bool
	// Warnings are told as events of the pod, each once since its time.
	Warnings []PodWarning
	// Only lets a deletion take away this manifest's pod and no other: one that was changed
	// or deleted meanwhile ends it with a *SupersededError. Nil means whatever there is.
	Only *podspec.Desired
	// Precondition is asked once the pod is locked and observed, with what is remembered of it. Its
	// error ends the pass before anything is planned. Nil asks nothing.
	Precondition func(*state.Checkpoint) error
	// Saved is the plan to execute, if it still fits; nil makes a new one.
	Saved *plan.Plan
	// Begun is called once it is written down what is about to be done; it may be nil.
	Begun func()
	// Debug is the container that a plan of Debug starts; nil as a rule.
	Debug *v1.EphemeralContainer
	// Planned is told of every plan before it is executed; it may be nil.
	Planned func(*plan.Plan)
}

// Outcome is what a pass came to.
type Outcome struct {
	// Plan is the last plan that was executed, and Input what it was made of. The pass does not change the input.
	Plan  *plan.Plan
	Input *plan.Input
	// Unchanged reports whether the pass had nothing to do and nothing to write down: the input still holds.
	Unchanged bool
	// Desired is what the plan brings about: the pod as it was applied before, if an edit of it is not
	// admitted.
	Desired *podspec.Desired
	// Failed are the steps that failed, Left those that were not begun.
	Failed  []StepError
	Skipped []*plan.Step
}

// Err joins the failures of the pass; nil when every step was done.
func (o *Outcome) Err() error {
	errs := make([]error, 0, len(o.Failed))
	for i := range o.Failed {
		errs = append(errs, &o.Failed[i])
	}
	return errors.Join(errs...)
}

// PodWarning is something that the user is to know of a pod, and that no step comes of.
type PodWarning struct {
	// Reason is that of the event, one word.
	Reason, Text string
	// Since is when it was first so.
	Since time.Time
}
