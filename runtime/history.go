package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/state"
)

// chronicle collects what a pass does, in the words of a kubelet's events.
type chronicle struct {
	events []state.PodEvent
	spans  []state.Span
}

func (c *chronicle) normal(at time.Time, reason, container, text string) {
	c.events = append(c.events, state.PodEvent{Type: state.Normal, Reason: reason, Container: container, Message: text, Last: at})
}

func (c *chronicle) warning(at time.Time, reason, container, text string) {
	c.events = append(c.events, state.PodEvent{Type: state.Warning, Reason: reason, Container: container, Message: text, Last: at})
}

// note takes in one event of the execution. The caller has the execution's lock.
func (c *chronicle) note(ev *Event) {
	switch ev.Kind {
	case StepStarted:
		c.began(ev)
	case StepDone:
		c.span(ev, false)
		c.done(ev)
	case StepFailed:
		c.span(ev, true)
		c.failed(ev)
	case Warning, StepProgress, StepSkipped:
	}
}

// spanned are the kinds of steps whose time is kept.
func spanned() []plan.Kind {
	return []plan.Kind{plan.RunSandbox, plan.PullImage, plan.PrepareVolume, plan.StartContainer, plan.CreateCgroup}
}

func (c *chronicle) span(ev *Event, failed bool) {
	if !slices.Contains(spanned(), ev.Step.Kind) {
		return
	}
	c.spans = append(c.spans, state.Span{
		Kind: string(ev.Step.Kind), Object: ev.Step.Object(), Begin: ev.Time.Add(-ev.Took), End: ev.Time, Failed: failed,
	})
}

// began has the events that a kubelet sends before it does something.
func (c *chronicle) began(ev *Event) {
	s := ev.Step
	switch {
	case s.Kind == plan.PullImage:
		c.normal(ev.Time, "Pulling", s.Container, fmt.Sprintf("Pulling image %q", s.Image))
	case s.Kind == plan.StopContainer:
		c.normal(ev.Time, "Killing", s.Container, killMessage(s))
	case s.Kind == plan.RunSandbox && s.Attempt > 0:
		c.normal(ev.Time, "SandboxChanged", "", "Pod sandbox changed, it will be killed and re-created.")
	}
}

func killMessage(s *plan.Step) string {
	if s.Message == "" {
		return "Stopping container " + s.Container
	}
	return fmt.Sprintf("Stopping container %s: %s", s.Container, s.Message)
}

func (c *chronicle) done(ev *Event) {
	s := ev.Step
	switch s.Kind { //nolint:exhaustive // the others are no news
	case plan.PullImage:
		c.normal(ev.Time, "Pulled", s.Container, fmt.Sprintf("Successfully pulled image %q in %s", s.Image, ev.Took.Round(time.Millisecond)))
	case plan.RunSandbox:
		c.normal(ev.Time, "SandboxCreated", "", fmt.Sprintf("Pod sandbox created, attempt %d", s.Attempt))
	case plan.StartContainer:
		c.normal(ev.Time, "Created", s.Container, fmt.Sprintf("Container created, attempt %d", s.Attempt))
		c.normal(ev.Time, "Started", s.Container, "Container started")
	case plan.UpdateContainer, plan.UpdatePod:
		c.normal(ev.Time, "ResizeCompleted", s.Container, s.Message)
	}
}

// failureReasons are the kubelet's words for a step that failed; Failed for all else.
func failureReasons() map[plan.Kind]string {
	return map[plan.Kind]string{
		plan.RunSandbox: "FailedCreatePodSandBox", plan.PrepareVolume: "FailedMount", plan.UpdateVolume: "FailedMount",
		plan.CreateCgroup: "FailedCreatePodContainer", plan.StopSandbox: "FailedKillPod", plan.StopContainer: "FailedKillPod",
	}
}

// failed names a failure as the kubelet does. Surprises are none, and neither is what the
// user ended, unless something came of it.
func (c *chronicle) failed(ev *Event) {
	step := (*StepError)(nil)
	if !errors.As(ev.Err, &step) || (errors.Is(step.Err, context.Canceled) && step.Reason != model.PostStartHookError) {
		return
	}
	reason := cmp.Or(failureReasons()[ev.Step.Kind], "Failed")
	if step.Reason == model.PostStartHookError {
		reason = "FailedPostStartHook"
	}
	text := fmt.Sprintf("Error: %s: %v", step.Reason, step.Err)
	if ev.Step.Volume != "" {
		text = fmt.Sprintf("Volume %s: %v", ev.Step.Volume, step.Err)
	}
	c.warning(ev.Time, reason, ev.Step.Container, text)
}

// holds has the events of containers that are not started now.
func (c *chronicle) holds(at time.Time, p *plan.Plan) {
	for i := range p.Holds {
		h := &p.Holds[i]
		reason, text := "Failed", fmt.Sprintf("Error: %s: %s", h.Reason, h.Message)
		if word := holdReasons()[h.Reason]; word != "" {
			reason, text = word, h.Message
		}
		if h.Reason == model.CrashLoopBackOff {
			text = fmt.Sprintf("Back-off restarting failed container %s in pod %s", h.Container, p.Pod)
		}
		c.warning(at, reason, h.Container, text)
	}
}

// holdReasons are the kubelet's words for what holds a container; Failed for all else.
func holdReasons() map[model.Reason]string {
	return map[model.Reason]string{
		model.CrashLoopBackOff: "BackOff", model.NetworkNotReady: "NetworkNotReady",
		model.ErrImageNeverPull: string(model.ErrImageNeverPull), model.ProbeStale: string(model.ProbeStale),
	}
}

// probes has the events of probes that did not succeed, and marks those that let a
// container count as started or ready.
func (c *chronicle) probes(at time.Time, reports []ProbeReport, before map[string]map[model.ProbeType]model.ProbeRecord) {
	for i := range reports {
		r := &reports[i]
		if !r.Asked {
			continue
		}
		name := r.Type.Title()
		switch r.Result.Verdict {
		case probe.Failure:
			c.warning(at, "Unhealthy", r.Container, fmt.Sprintf("%s probe failed: %s", name, r.Result.Message))
		case probe.Unknown:
			c.warning(at, "Unhealthy", r.Container, fmt.Sprintf("%s probe errored: %s", name, r.Result.Message))
		case probe.Warning:
			c.warning(at, "ProbeWarning", r.Container, fmt.Sprintf("%s probe warning: %s", name, r.Result.Message))
		case probe.Success:
		}
		passed := r.Record.Result == model.ProbeSuccess && before[r.ContainerID][r.Type].Result != model.ProbeSuccess
		if passed && r.Type != model.Liveness {
			kind := map[model.ProbeType]string{model.Readiness: "Ready", model.Startup: "Started"}[r.Type]
			c.spans = append(c.spans, state.Span{Kind: kind, Object: r.Container, Begin: at, End: at})
		}
	}
}

// write adds what was collected to the pod's history. What cannot be written there
// is lost, and nothing else.
func (c *chronicle) write(pod state.Pod, ref model.PodRef, redactor *redaction.Redactor) error {
	if len(c.events)+len(c.spans) == 0 {
		return nil
	}
	h, err := pod.ReadHistory()
	if err != nil {
		return err
	}
	h.Pod = ref
	for i := range c.events {
		c.events[i].Message = redactor.Text(c.events[i].Message)
	}
	if !h.Redacted {
		h.Redact(redactor)
		h.Redacted = true
	}
	h.Add(c.events...)
	h.Mark(c.spans...)
	return pod.WriteHistory(h)
}
