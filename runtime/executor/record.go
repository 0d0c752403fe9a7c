package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// recordStep records one event of the execution.
func recordStep(r *events.Recorder, ev *Event) {
	switch ev.Kind {
	case StepStarted:
		recordStart(r, ev)
	case StepDone:
		recordSpan(r, ev, false)
		recordDone(r, ev)
	case StepFailed:
		recordSpan(r, ev, true)
		recordFailure(r, ev)
	case Warning, StepProgress, StepSkipped:
	}
}

// spanned are the kinds of steps whose time is kept.
func spanned() []plan.Kind {
	return []plan.Kind{plan.RunSandbox, plan.PullImage, plan.PrepareVolume, plan.StartContainer, plan.CreateCgroup}
}

func recordSpan(r *events.Recorder, ev *Event, failed bool) {
	if !slices.Contains(spanned(), ev.Step.Kind) {
		return
	}
	r.Span(state.Span{
		Kind: string(ev.Step.Kind), Object: ev.Step.Object(), Begin: ev.Time.Add(-ev.Took), End: ev.Time, Failed: failed,
	})
}

// recordStart records the events that a kubelet sends before it does something.
func recordStart(r *events.Recorder, ev *Event) {
	s := ev.Step
	switch {
	case s.Kind == plan.PullImage:
		r.Normal(ev.Time, "Pulling", s.Container, fmt.Sprintf("Pulling image %q", s.Image))
	case s.Kind == plan.StopContainer:
		r.Normal(ev.Time, "Killing", s.Container, killMessage(s))
	case s.Kind == plan.RunSandbox && s.Attempt > 0:
		r.Normal(ev.Time, "SandboxChanged", "", "Pod sandbox changed, it will be killed and re-created.")
	}
}

func killMessage(s *plan.Step) string {
	if s.Message == "" {
		return "Stopping container " + s.Container
	}
	return fmt.Sprintf("Stopping container %s: %s", s.Container, s.Message)
}

func recordDone(r *events.Recorder, ev *Event) {
	s := ev.Step
	switch s.Kind { //nolint:exhaustive // the others are no news
	case plan.PullImage:
		r.Normal(ev.Time, "Pulled", s.Container, fmt.Sprintf("Successfully pulled image %q in %s", s.Image, ev.Took.Round(time.Millisecond)))
	case plan.RunSandbox:
		r.Normal(ev.Time, "SandboxCreated", "", fmt.Sprintf("Pod sandbox created, attempt %d", s.Attempt))
	case plan.StartContainer:
		r.Normal(ev.Time, "Created", s.Container, fmt.Sprintf("Container created, attempt %d", s.Attempt))
		r.Normal(ev.Time, "Started", s.Container, "Container started")
	case plan.UpdateContainer, plan.UpdatePod:
		r.Normal(ev.Time, "ResizeCompleted", s.Container, s.Message)
	}
}

// failureReasons are the kubelet's words for a step that failed; Failed for all else.
func failureReasons() map[plan.Kind]string {
	return map[plan.Kind]string{
		plan.RunSandbox: "FailedCreatePodSandBox", plan.PrepareVolume: "FailedMount", plan.UpdateVolume: "FailedMount",
		plan.CreateCgroup: "FailedCreatePodContainer", plan.StopSandbox: "FailedKillPod", plan.StopContainer: "FailedKillPod",
	}
}

// recordFailure names a failure as the kubelet does. Surprises are none, and neither is what the
// user ended, unless something came of it.
func recordFailure(r *events.Recorder, ev *Event) {
	step := (*StepError)(nil)
	if !errors.As(ev.Err, &step) || (errors.Is(step.Err, context.Canceled) && !step.Stopped) {
		return
	}
	reason := cmp.Or(failureReasons()[ev.Step.Kind], "Failed")
	if step.Stopped {
		reason = "FailedPostStartHook"
	}
	text := fmt.Sprintf("Error: %s: %v", step.Reason, step.Err)
	if ev.Step.Volume != "" {
		text = fmt.Sprintf("Volume %s: %v", ev.Step.Volume, step.Err)
	}
	r.Warning(ev.Time, reason, ev.Step.Container, text)
}

// recordHolds records the events of containers that are not started now.
func recordHolds(r *events.Recorder, at time.Time, p *plan.Plan) {
	for i := range p.Holds {
		h := &p.Holds[i]
		reason, text := "Failed", fmt.Sprintf("Error: %s: %s", h.Reason, h.Message)
		if word := holdReasons()[h.Reason]; word != "" {
			reason, text = word, h.Message
		}
		if h.Reason == model.CrashLoopBackOff {
			text = fmt.Sprintf("Back-off restarting failed container %s in pod %s", h.Container, p.Pod)
		}
		r.Warning(at, reason, h.Container, text)
	}
}

// holdReasons are the kubelet's words for what holds a container; Failed for all else.
func holdReasons() map[model.Reason]string {
	return map[model.Reason]string{
		model.CrashLoopBackOff: "BackOff", model.NetworkNotReady: "NetworkNotReady",
		model.ErrImageNeverPull: string(model.ErrImageNeverPull), model.ProbeStale: string(model.ProbeStale),
		model.FailedMount: "FailedMount", model.CreatePodSandboxError: "FailedCreatePodSandBox", model.InvalidImageName: "InspectFailed",
		model.AppArmor: string(model.AppArmor), model.SupplementalGroupsPolicyNotSupported: string(model.SupplementalGroupsPolicyNotSupported),
	}
}
