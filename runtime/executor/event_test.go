package executor

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// TestStepErrorsNameTheirObject: the pod, the container or volume, and what went wrong.
func TestStepErrorsNameTheirObject(t *testing.T) {
	cause := errors.New("no space")
	for want, c := range map[string]struct {
		step   plan.Step
		reason model.Reason
	}{
		"pod ns/web: container a: ErrImagePull: no space":                                            {plan.Step{Kind: plan.PullImage, Container: "a"}, "ErrImagePull"},
		"pod ns/web: volume v: FailedMount: no space":                                                {plan.Step{Kind: plan.PrepareVolume, Volume: "v"}, "FailedMount"},
		"pod ns/web: RunSandbox: SomeReason: no space":                                               {plan.Step{Kind: plan.RunSandbox}, "SomeReason"},
		"pod ns/web: " + (&plan.Step{Kind: plan.RemoveCgroup}).Object() + ": RemoveCgroup: no space": {plan.Step{Kind: plan.RemoveCgroup}, "RemoveCgroup"},
	} {
		err := &StepError{Pod: model.PodRef{Namespace: "ns", Name: "web"}, Step: &c.step, Reason: c.reason, Err: cause}
		if err.Error() != want || !errors.Is(err, cause) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestReasonsOfErrors: the innermost name that was given is told, also of a wrapped error, and
// no error stays none.
func TestReasonsOfErrors(t *testing.T) {
	cause := errors.New("told to fail")
	if err := model.WithReason("X", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	err := fmt.Errorf("beside: %w", model.WithReason(model.ErrImagePull, cause))
	if got := model.ReasonOf(err, model.Reason(plan.PullImage)); got != "ErrImagePull" || !errors.Is(err, cause) || err.Error() != "beside: told to fail" {
		t.Errorf("reason %s of %v", got, err)
	}
	if got := model.ReasonOf(cause, "PullImage"); got != "PullImage" {
		t.Errorf("without one the reason is %s", got)
	}
}

// TestWhatFollowsFromAFailure: starts and postStart hooks are tried again, and a hook that fails
// leaves a container that was stopped. The reason decides none of it.
func TestWhatFollowsFromAFailure(t *testing.T) {
	cause, step := errors.New("told to fail"), &plan.Step{Kind: plan.StartContainer, Container: "a"}
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
		if got.Reason != c.want.Reason || got.Retryable != c.want.Retryable || got.Stopped != c.want.Stopped || !errors.Is(got.Err, cause) || got.Pod.Name != "web" || got.Step != step {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestInterruptedSteps: what the user ended is no failure of the runtime. A hook that was ended has
// stopped its container, which is told as ever.
func TestInterruptedSteps(t *testing.T) {
	step := &plan.Step{Kind: plan.StopContainer, Container: "a"}
	ended := fmt.Errorf("stopping it: %w", context.Canceled)
	if got := stepError(model.PodRef{}, step, model.WithReason(model.KillContainerError, ended)); got.Reason != model.Interrupted {
		t.Errorf("a stop: %s", got.Reason)
	}
	if got := stepError(model.PodRef{}, step, hookError(ended)); got.Reason != model.PostStartHookError || !got.Stopped {
		t.Errorf("a hook: %+v", got)
	}
}

// TestSurprisesTeachOnlyTakenNames: the next plan takes an attempt above the highest that was
// taken; a sandbox that was lost teaches nothing.
func TestSurprisesTeachOnlyTakenNames(t *testing.T) {
	reserved := map[string]uint32{"a": 3}
	taken := reservedOr(errors.New(`name "a_1" is reserved for "x"`), "a", 2)
	surprise := (*SurpriseError)(nil)
	if !errors.As(taken, &surprise) {
		t.Fatalf("a name that is taken is %v", taken)
	}
	surprise.Learn(reserved)
	if reserved["a"] != 3 {
		t.Errorf("a lower attempt made it %d", reserved["a"])
	}
	(&SurpriseError{name: "a", attempt: 5, reserved: true}).Learn(reserved)
	(&SurpriseError{name: "b", attempt: 9, err: errors.New("not found")}).Learn(reserved)
	if _, learnt := reserved["b"]; reserved["a"] != 5 || learnt {
		t.Errorf("learnt %v", reserved)
	}
	other := errors.New("disk full")
	if err := reservedOr(other, "a", 2); err != other { //nolint:errorlint // it is the very one
		t.Errorf("another error became %v", err)
	}
}
