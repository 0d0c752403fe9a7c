package executor

import (
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
}

// StepError is the failure of one step.
type StepError struct {
	Pod  model.PodRef
	Step *plan.Step
	// Reason is the kubelet's name for the failure: ErrImagePull,
	// CreateContainerConfigError, RunContainerError and so on.
	Reason model.Reason
	Err    error
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

// reasonError carries the kubelet's name for a failure up to the step it
// happened in.
type reasonError struct {
	reason model.Reason
	err    error
}

func (e *reasonError) Error() string { return e.err.Error() }

func (e *reasonError) Unwrap() error { return e.err }

func withReason(reason model.Reason, err error) error {
	if err == nil {
		return nil
	}
	return &reasonError{reason: reason, err: err}
}

func reasonOf(err error, fallback model.Reason) model.Reason {
	if r, ok := errors.AsType[*reasonError](err); ok {
		return r.reason
	}
	return fallback
}
