package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// EventKind is the kind of an event of a step.
type EventKind string

// The kinds of events.
const (
	StepStarted EventKind = "Started"
	// StepProgress reports the progress of a long step.
	StepProgress EventKind = "Progress"
	StepDone     EventKind = "Done"
	StepFailed   EventKind = "Failed"
	// StepSkipped: an earlier step failed, or the pass was interrupted.
	StepSkipped EventKind = "Skipped"
	// Warning: a part of a step failed and the step continues, or the plan has a remark.
	Warning EventKind = "Warning"
)

// Event is one event during the execution of a plan. Step points to the step of the plan.
type Event struct {
	Kind EventKind
	Pod  model.PodRef
	Step *plan.Step
	// Time is when it happened, Took the duration of the step.
	Time time.Time
	Took time.Duration
	Err  error
	// Detail is known only after the execution: an address, an image ID.
	Detail string
	// Bytes and TotalBytes are the progress of a pull. The total is unknown before a part begins. For concurrent pulls
	// they are sums.
	Bytes, TotalBytes int64
	// Until is when a container that was asked to stop is killed; zero for other steps.
	Until time.Time
}

// StepError is the failure of one step.
type StepError struct {
	Pod  model.PodRef
	Step *plan.Step
	// Reason is the kubelet's name for the failure: ErrImagePull, CreateContainerConfigError, RunContainerError and so
	// on.
	Reason model.Reason
	// Retryable reports whether the container may be started again after its restart delay, as in a kubelet: its start
	// or its postStart hook failed.
	Retryable bool
	// Stopped reports whether the container ran and was stopped because its postStart hook failed.
	Stopped bool
	Err     error
}

// Error returns the pod, the container, the step and the cause.
func (e *StepError) Error() string {
	what := string(e.Step.Kind)
	if string(e.Reason) == what {
		what = e.Step.Object()
	}
	if e.Step.Container != "" {
		return fmt.Sprintf("pod %s: container %s: %s: %v", e.Pod, e.Step.Container, e.Reason, e.Err)
	}
	if e.Step.Volume != "" {
		return fmt.Sprintf("pod %s: volume %s: %s: %v", e.Pod, e.Step.Volume, e.Reason, e.Err)
	}
	return fmt.Sprintf("pod %s: %s: %s: %v", e.Pod, what, e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// StateChangedError reports that the actual state differs from the observed one. The caller observes the pod again and
// makes a new plan.
type StateChangedError struct {
	// name and attempt are already in use; the name is empty for a sandbox.
	name     string
	attempt  uint32
	reserved bool
	err      error
}

func (e *StateChangedError) Error() string {
	return "the state of the runtime has changed since the plan was made: " + e.err.Error()
}

func (e *StateChangedError) Unwrap() error { return e.err }

// Learn records the attempt in use for the next plan.
func (e *StateChangedError) Learn(reserved map[string]uint32) {
	if e.reserved {
		reserved[e.name] = max(reserved[e.name], e.attempt)
	}
}

// startError returns a failure of a start that may be retried.
func startError(err error) error {
	return &model.ReasonError{Reason: model.RunContainerError, Retryable: true, Err: err}
}

// hookError returns a failure of a postStart hook whose container has been stopped.
func hookError(err error) error {
	return &model.ReasonError{Reason: model.PostStartHookError, Retryable: true, Stopped: true, Err: err}
}

// stepError returns the failure of a step. Without a reason in the error, the reason is the step's kind. A canceled
// step has the reason Interrupted, unless a container was stopped.
func stepError(pod model.PodRef, s *plan.Step, err error) StepError {
	failure := StepError{Pod: pod, Step: s, Reason: model.Reason(s.Kind), Err: err}
	if r, ok := errors.AsType[*model.ReasonError](err); ok {
		failure.Reason, failure.Retryable, failure.Stopped = r.Reason, r.Retryable, r.Stopped
	}
	if errors.Is(err, context.Canceled) && !failure.Stopped {
		failure.Reason = model.Interrupted
	}
	return failure
}
