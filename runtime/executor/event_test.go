package executor

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// TestStepErrorsNameTheirObject checks that errors name the pod, the container or volume, and the cause.
func TestStepErrorsNameTheirObject(t *testing.T) {
	cause := errors.New("no space")
	for want, c := range map[string]struct {
		step   plan.Step
		reason model.Reason
	}{
		"pod ns/web: container a: ErrImagePull: no space": {
			plan.Step{Kind: plan.PullImage, Container: "a"},
			"ErrImagePull",
		},
		"pod ns/web: volume v: FailedMount: no space": {
			plan.Step{Kind: plan.PrepareVolume, Volume: "v"},
			"FailedMount",
		},
		"pod ns/web: RunSandbox: SomeReason: no space": {plan.Step{Kind: plan.RunSandbox}, "SomeReason"},
		"pod ns/web: " + (&plan.Step{Kind: plan.RemoveCgroup}).Object() +
			": RemoveCgroup: no space": {plan.Step{Kind: plan.RemoveCgroup}, "RemoveCgroup"},
	} {
		err := &StepError{Pod: model.PodRef{Namespace: "ns", Name: "web"}, Step: &c.step, Reason: c.reason, Err: cause}
		if err.Error() != want || !errors.Is(err, cause) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestReasonsOfErrors checks that the innermost reason counts, also in a wrapped error, and that nil stays nil.
func TestReasonsOfErrors(t *testing.T) {
	cause := errors.New("injected failure")
	if err := model.WithReason("X", nil); err != nil {
		t.Errorf("WithReason(nil) = %v, want nil", err)
	}
	err := fmt.Errorf("beside: %w", model.WithReason(model.ErrImagePull, cause))
	if got := model.ReasonOf(err, model.Reason(plan.PullImage)); got != "ErrImagePull" || !errors.Is(err, cause) ||
		err.Error() != "beside: injected failure" {
		t.Errorf("reason %s of %v", got, err)
	}
	if got := model.ReasonOf(cause, "PullImage"); got != "PullImage" {
		t.Errorf("reason of an error without one: %s", got)
	}
}

// TestRetriesAfterFailures checks that failed starts and postStart hooks are retried, and that a failed hook leaves
// a stopped container. The reason does not matter.
func TestRetriesAfterFailures(t *testing.T) {
	cause, step := errors.New("injected failure"), &plan.Step{Kind: plan.StartContainer, Container: "a"}
	for name, c := range map[string]struct {
		err  error
		want StepError
	}{
		"a start":         {startError(cause), StepError{Reason: model.RunContainerError, Retryable: true}},
		"a hook":          {hookError(cause), StepError{Reason: model.PostStartHookError, Retryable: true, Stopped: true}},
		"a configuration": {model.WithReason(model.CreateContainerConfigError, cause), StepError{Reason: model.CreateContainerConfigError}},
		"no reason":       {cause, StepError{Reason: model.Reason(plan.StartContainer)}},
	} {
		got := stepError(model.PodRef{Name: "web"}, step, c.err)
		if got.Reason != c.want.Reason || got.Retryable != c.want.Retryable || got.Stopped != c.want.Stopped ||
			!errors.Is(got.Err, cause) || got.Pod.Name != "web" || got.Step != step {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestInterruptedSteps checks that a canceled step is not reported as a failure of the runtime. A canceled hook has
// stopped its container, which is reported as usual.
func TestInterruptedSteps(t *testing.T) {
	step := &plan.Step{Kind: plan.StopContainer, Container: "a"}
	ended := fmt.Errorf("stopping it: %w", context.Canceled)
	if got := stepError(model.PodRef{}, step, model.WithReason(model.KillContainerError, ended)); got.Reason != model.Interrupted {
		t.Errorf("reason of a canceled stop: %s", got.Reason)
	}
	if got := stepError(model.PodRef{}, step, hookError(ended)); got.Reason != model.PostStartHookError || !got.Stopped {
		t.Errorf("reason of a failed hook: %+v", got)
	}
}

// TestAttemptAfterNameInUse checks that the next plan uses an attempt above the highest one in use. A lost
// sandbox reserves nothing.
func TestAttemptAfterNameInUse(t *testing.T) {
	reserved := map[string]uint32{"a": 3}
	taken := reservedOr(errors.New(`name "a_1" is reserved for "x"`), "a", 2)
	changed := (*StateChangedError)(nil)
	if !errors.As(taken, &changed) {
		t.Fatalf("error for a reserved name: %v", taken)
	}
	changed.Learn(reserved)
	if reserved["a"] != 3 {
		t.Errorf("Learn with a lower attempt set it to %d", reserved["a"])
	}
	(&StateChangedError{name: "a", attempt: 5, reserved: true}).Learn(reserved)
	(&StateChangedError{name: "b", attempt: 9, err: errors.New("not found")}).Learn(reserved)
	if _, learnt := reserved["b"]; reserved["a"] != 5 || learnt {
		t.Errorf("learned %v", reserved)
	}
	other := errors.New("disk full")
	if err := reservedOr(other, "a", 2); err != other { //nolint:errorlint // the same error is expected
		t.Errorf("reservedOr changed another error to %v", err)
	}
}
