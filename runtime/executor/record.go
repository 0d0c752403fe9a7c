package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// recordStep records one event of the execution of a plan. manifest is nil on deletion.
func recordStep(r *events.Recorder, p *plan.Plan, manifest *v1.Pod, ev *Event) {
	switch ev.Kind {
	case StepStarted:
		recordStart(r, p, manifest, ev)
	case StepDone:
		recordSpan(r, ev, false)
		recordDone(r, ev)
		recordDecision(r, ev, "")
	case StepFailed:
		recordSpan(r, ev, true)
		recordFailure(r, ev)
	case Warning, StepProgress, StepSkipped:
	}
}

// decisive lists the kinds of steps that change what runs. Failures of all kinds are recorded.
func decisive() []plan.Kind {
	return []plan.Kind{
		plan.RunSandbox, plan.StopSandbox, plan.StartContainer, plan.StopContainer,
		plan.UpdateContainer, plan.UpdatePod,
	}
}

// recordDecision records a step with the reason in the plan. failure is empty if the step succeeded.
func recordDecision(r *events.Recorder, ev *Event, failure string) {
	s := ev.Step
	if failure == "" && !slices.Contains(decisive(), s.Kind) {
		return
	}
	r.Decision(state.Decision{
		Kind: string(s.Kind), Container: s.Container, Attempt: s.Attempt, Reason: s.Reason, Message: s.Message,
		Error: failure, Last: ev.Time,
	})
}

// recordDrift records what changed outside podctl before a pass. A plan without steps repairs nothing.
func recordDrift(r *events.Recorder, p *plan.Plan) {
	if !p.Pending() {
		return
	}
	for _, text := range p.Drift {
		r.Decision(state.Decision{Kind: state.Drift, Message: text, Last: p.ObservedAt})
	}
}

// recordHolds records the holds of a plan as decisions: a restart delay, an eviction and a rejection once, and any
// other hold at most once a minute.
func recordHolds(r *events.Recorder, at time.Time, p *plan.Plan) {
	for i := range p.Holds {
		h := &p.Holds[i]
		since := at.Add(-holdEventEvery)
		switch {
		case h.Delay != nil:
			since = delayedSince(h)
		case h.Evicted && p.Eviction != nil:
			since = p.Eviction.At
		case h.Admission && p.Rejection != nil:
			since = p.Rejection.At
		}
		r.DecisionOnce(since, state.Decision{
			Kind: state.Held, Container: h.Container, Reason: h.Reason, Message: h.Message, Last: at,
		})
	}
}

// spanned lists the kinds of steps whose duration is recorded.
func spanned() []plan.Kind {
	return []plan.Kind{plan.RunSandbox, plan.PullImage, plan.PrepareVolume, plan.StartContainer, plan.CreateCgroup}
}

func recordSpan(r *events.Recorder, ev *Event, failed bool) {
	if !slices.Contains(spanned(), ev.Step.Kind) {
		return
	}
	r.Span(state.Span{
		Kind:   string(ev.Step.Kind),
		Object: ev.Step.Object(),
		Begin:  ev.Time.Add(-ev.Took),
		End:    ev.Time,
		Failed: failed,
	})
}

// recordStart records the events that a kubelet sends before an action.
func recordStart(r *events.Recorder, p *plan.Plan, manifest *v1.Pod, ev *Event) {
	s := ev.Step
	switch s.Kind { //nolint:exhaustive // the others cause no event
	case plan.PullImage:
		if _, err := images.WithTag(s.Image); err == nil {
			r.Normal(ev.Time, "Pulling", s.Container, fmt.Sprintf("Pulling image %q", s.Image))
		}
	case plan.StopContainer:
		r.Normal(ev.Time, "Killing", s.Container, killMessage(p, manifest, s))
	case plan.RunSandbox:
		if s.Attempt > 0 {
			r.Normal(ev.Time, "SandboxChanged", "", "Pod sandbox changed, it will be killed and re-created.")
		}
	case plan.StartContainer:
		if !pullsFor(p, s) {
			r.Normal(ev.Time, "Pulled", s.Container, fmt.Sprintf(
				"Container image %q already present on machine and can be accessed by the pod", s.Image))
		}
	}
}

// pullsFor reports whether a plan pulls an image for exactly the container that a step starts. Other containers with
// the same image find it present.
func pullsFor(p *plan.Plan, start *plan.Step) bool {
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
		return s.Kind == plan.PullImage && s.Image == start.Image && s.Container == start.Container
	})
}

func recordDone(r *events.Recorder, ev *Event) {
	s := ev.Step
	switch s.Kind { //nolint:exhaustive // the others cause no event
	case plan.PullImage:
		r.Normal(ev.Time, "Pulled", s.Container, fmt.Sprintf(
			"Successfully pulled image %q in %s", s.Image, ev.Took.Round(time.Millisecond)))
	case plan.RunSandbox:
		r.Normal(ev.Time, "SandboxCreated", "", fmt.Sprintf("Pod sandbox created, attempt %d", s.Attempt))
	case plan.StartContainer:
		r.Normal(ev.Time, "Created", s.Container, "Container created")
		r.Normal(ev.Time, "Started", s.Container, "Container started")
	case plan.UpdateContainer, plan.UpdatePod:
		if !inCluster(r) {
			r.Normal(ev.Time, "ResizeCompleted", s.Container, s.Message)
		}
	}
}

// inCluster reports whether the API server owns the pod.
func inCluster(r *events.Recorder) bool { return r.Pod != nil && r.Pod.FromCluster() }

// recordFailure records a failure with the kubelet's message. It ignores state changes and canceled steps, unless a
// container was stopped.
func recordFailure(r *events.Recorder, ev *Event) {
	step := (*StepError)(nil)
	if !errors.As(ev.Err, &step) || (errors.Is(step.Err, context.Canceled) && !step.Stopped) {
		return
	}
	s := ev.Step
	recordDecision(r, ev, kubeletText(step.Err))
	if resizes(s) && inCluster(r) {
		return // failResize records it.
	}
	switch s.Kind { //nolint:exhaustive // the others are recorded like those of containers
	case plan.RunSandbox:
		r.Warning(ev.Time, "FailedCreatePodSandBox", "", "Failed to create pod sandbox: "+cri.Raw(step.Err))
	case plan.PrepareVolume, plan.UpdateVolume:
		text := model.KubeletText(step.Err)
		if text == "" {
			text = fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", s.Volume, step.Err)
		}
		r.Warning(ev.Time, "FailedMount", "", text)
	case plan.CreateCgroup:
		r.Warning(ev.Time, "FailedCreatePodContainer", "", "unable to ensure pod container exists: "+step.Err.Error())
	case plan.StopContainer, plan.StopSandbox:
		r.Warning(ev.Time, "FailedKillPod", s.Container, "error killing pod: "+cri.Raw(step.Err))
	case plan.PullImage:
		recordFailedPull(r, ev, step)
	case plan.StartContainer:
		recordFailedStart(r, ev, step)
	case plan.CheckContainer:
		r.Warning(ev.Time, "Failed", s.Container, "Error: "+kubeletText(step.Err))
	default:
		r.Warning(ev.Time, "Failed", s.Container, fmt.Sprintf("Error: %s: %s", step.Reason, kubeletText(step.Err)))
	}
}

// recordFailedPull records both events of a failed pull (kubelet: EnsureImageExists, startContainer).
func recordFailedPull(r *events.Recorder, ev *Event, failure *StepError) {
	container, text := ev.Step.Container, kubeletText(failure.Err)
	switch failure.Reason { //nolint:exhaustive // all others are failed pulls
	case model.InvalidImageName:
		r.Warning(ev.Time, "InspectFailed", container, text)
	case model.ImageInspectError:
		text = fmt.Sprintf("Failed to inspect image %q: %s", ev.Step.Image, text)
		r.Warning(ev.Time, "InspectFailed", container, text)
	default:
		r.Warning(ev.Time, "Failed", container, fmt.Sprintf("Failed to pull image %q: %s", ev.Step.Image, text))
	}
	r.Warning(ev.Time, "Failed", container, "Error: "+string(failure.Reason))
}

// recordFailedStart records the stages that a container reached, and its failure.
func recordFailedStart(r *events.Recorder, ev *Event, failure *StepError) {
	container := ev.Step.Container
	if failure.Retryable {
		r.Normal(ev.Time, "Created", container, "Container created")
	}
	if !failure.Stopped {
		r.Warning(ev.Time, "Failed", container, "Error: "+kubeletText(failure.Err))
		return
	}
	r.Normal(ev.Time, "Started", container, "Container started")
	r.Warning(ev.Time, "FailedPostStartHook", container, "PostStartHook failed: "+hookCause(failure.Err))
	r.Normal(ev.Time, "Killing", container, "FailedPostStartHook")
}

// hookCause returns why a hook failed, without the name of the hook.
func hookCause(err error) string {
	if hook := (*hookFailure)(nil); errors.As(err, &hook) {
		return hook.err.Error()
	}
	return err.Error()
}

// deadlineText is a kubelet's message for a pod past its deadline.
const deadlineText = "Pod was active on the node longer than the specified deadline"

// recordPlan records the events of a plan as a whole: a pod past its deadline, and containers that are not started now.
func recordPlan(r *events.Recorder, at time.Time, p *plan.Plan) {
	if slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Reason == model.DeadlineExceeded }) {
		r.Normal(at, "DeadlineExceeded", "", deadlineText)
	}
	for i := range p.Holds {
		switch h := &p.Holds[i]; {
		case h.Resize != nil, h.Preempts != nil: // beginResize records a resize, and the preempted pods have events.
			continue
		case h.Admission:
			r.WarningOnce(at, rejectedAt(p), string(h.Reason), "", statusText(h))
			continue
		case h.Evicted && p.Eviction.Shutdown: // A kubelet sends no event.
			continue
		case h.Evicted:
			r.Evicted(at, p.Eviction, statusText(h))
			continue
		}
		recordHold(r, at, p.Pod, &p.Holds[i])
	}
}

// rejectedAt returns when a pod was rejected. A rejection, or an edit that is not admitted, becomes one event (kubelet:
// rejectPod).
func rejectedAt(p *plan.Plan) time.Time {
	if p.Rejection == nil {
		return time.Time{}
	}
	return p.Rejection.At
}

// delayedSince returns when the restart delay of a hold began.
func delayedSince(h *plan.Hold) time.Time {
	if h.Delay == nil {
		return time.Time{}
	}
	return h.Delay.Until.Add(-h.Delay.Duration)
}

// holdEventEvery is the shortest time between two events for the same hold.
const holdEventEvery = time.Minute

// holdContainer returns the container that the event of a hold names. For a pod of the API server, which alone has a
// kubelet's text for a missing object, the event of a volume names none (kubelet: SyncPod, WaitForAttachAndMount).
func holdContainer(h *plan.Hold) string {
	if h.Reason == model.FailedMount && h.MissingObject && h.Status != "" {
		return ""
	}
	return h.Container
}

// recordHold records the hold of a start: a restart delay once while it lasts, and any other hold at most once a
// minute.
func recordHold(r *events.Recorder, at time.Time, pod model.PodRef, h *plan.Hold) {
	text := statusText(h)
	warn := func(reason, container, text string) {
		r.WarningOnce(at, at.Add(-holdEventEvery), reason, container, text)
	}
	switch h.Reason { //nolint:exhaustive // the others are failures
	case model.CrashLoopBackOff:
		delayed := fmt.Sprintf("Back-off restarting failed container %s in pod %s", h.Container, pod.Full())
		r.WarningOnce(at, delayedSince(h), "BackOff", h.Container, delayed)
	case model.NetworkNotReady:
		warn(string(h.Reason), "", "network is not ready: container runtime network not ready: "+text)
	case model.ErrImageNeverPull:
		warn(string(h.Reason), h.Container, text)
		warn("Failed", h.Container, "Error: "+string(h.Reason))
	case model.InvalidImageName:
		warn("InspectFailed", h.Container, text)
		warn("Failed", h.Container, "Error: "+string(h.Reason))
	case model.FailedMount, model.ProbeStale, model.AppArmor, model.SupplementalGroupsPolicyNotSupported:
		warn(string(h.Reason), holdContainer(h), text)
	case model.CreatePodSandboxError:
		warn("FailedCreatePodSandBox", "", "Failed to create pod sandbox: "+text)
	case model.CreateContainerConfigError, model.CreateContainerError:
		warn("Failed", h.Container, "Error: "+text)
	default:
		warn("Failed", h.Container, fmt.Sprintf("Error: %s: %s", h.Reason, text))
	}
}
