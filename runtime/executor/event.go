package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// EventKind says what happened to a step.
type EventKind string

// What can happen to a step.
const (
	StepStarted EventKind = "Started"
	// StepProgress: a step that takes its time has got somewhere.
	StepProgress EventKind = "Progress"
	StepDone     EventKind = "Done"
	StepFailed   EventKind = "Failed"
	// StepSkipped: something before it failed, or the pass was interrupted.
	StepSkipped EventKind = "Skipped"
	// Warning: the step goes on although something in it went wrong, or the plan has a
	// remark.
	Warning EventKind = "Warning"
)

// Event is one thing that happened while a plan was executed. The step is the
// very one that the plan shows.
type Event struct {
	Kind EventKind
	Pod  model.PodRef
	Step *plan.Step
	// Time is when it happened, Took how long the step needed.
	Time time.Time
	Took time.Duration
	Err  error
	// Detail says what only the execution could tell: an address, an image id.
	Detail string
	// Bytes and TotalBytes say how far a pull is. What will come is not known before it begins;
	// of pulls at the same time they are the sum.
	Bytes, TotalBytes int64
	// Until is when a container that was asked to end is killed; zero for other steps.
	Until time.Time
}

// StepError is the failure of one step.
type StepError struct {
	Pod  model.PodRef
	Step *plan.Step
	// Reason is the kubelet's name for the failure: ErrImagePull,
	// CreateContainerConfigError, RunContainerError and so on.
	Reason model.Reason
	// Retryable reports whether the container may be started again after its restart delay, as
	// the kubelet does: its start failed, or its postStart hook.
	Retryable bool
	// Stopped reports whether the container ran and was stopped again, because its postStart
	// hook failed.
	Stopped bool
	Err     error
}

// Error names pod, container and step, and the cause.
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

// SurpriseError says that the world was not as observed: the pass ends, looks
// again and makes a new plan.
type SurpriseError struct {
	// name and attempt are what turned out to be taken; the sandbox's name is
	// empty.
	name     string
	attempt  uint32
	reserved bool
	err      error
}

func (e *SurpriseError) Error() string {
	return "the runtime's state changed meanwhile: " + e.err.Error()
}

func (e *SurpriseError) Unwrap() error { return e.err }

// Learn keeps what the surprise taught for the next plan.
func (e *SurpriseError) Learn(reserved map[string]uint32) {
	if e.reserved {
		reserved[e.name] = max(reserved[e.name], e.attempt)
	}
}

// startError is the failure of a start that may be tried again.
func startError(err error) error {
	return &model.ReasonError{Reason: model.RunContainerError, Retryable: true, Err: err}
}

// hookError is the failure of a postStart hook, whose container has been stopped.
func hookError(err error) error {
	return &model.ReasonError{Reason: model.PostStartHookError, Retryable: true, Stopped: true, Err: err}
}

// stepError is the failure of a step. Its reason is the step's kind where the error has none. What
// the user ended is no failure of the runtime, unless something came of it.
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
