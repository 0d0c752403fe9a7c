package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/state"
)

// subjects returns the pod, if there is something to explain, and the containers.
func (x *explainer) subjects() []Subject {
	all := []Subject{}
	if causes := x.podCauses(); len(causes) > 0 {
		all = append(all, Subject{State: string(x.Status.Status.Phase), Since: x.started(), Causes: causes})
	}
	for _, ref := range podspec.Containers(x.Status) {
		if x.Container == "" || x.Container == ref.Name {
			all = append(all, x.container(ref))
		}
	}
	return all
}

func (x *explainer) started() *time.Time {
	if at := x.Status.Status.StartTime; at != nil {
		return &at.Time
	}
	return nil
}

// podCauses explains what concerns the pod as a whole.
func (x *explainer) podCauses() []Cause {
	var causes []Cause
	add := func(c Cause) { causes = append(causes, c) }
	if m := x.Memory; m != nil {
		switch {
		case m.Eviction != nil:
			add(Cause{Reason: m.Eviction.Reason(), Message: m.Eviction.Message, Changes: x.afterEviction()})
		case m.Rejection != nil:
			add(Cause{Reason: m.Rejection.Reason, Message: m.Rejection.StatusMessage(), Changes: x.afterRejection()})
		}
		if done := m.Completion; done != nil {
			message := fmt.Sprintf("the pod has finished: %s", done.Phase)
			add(Cause{Reason: model.Completed, Message: message, Changes: x.afterEnd()})
		}
	}
	if deleting := x.deletion(); deleting != nil {
		add(*deleting)
	}
	if a := x.Agent; a != nil {
		if a.BlockedBy != "" {
			add(Cause{
				Message: "another pod has its name, and must be gone first: uid " + a.BlockedBy,
				Changes: []string{"the end of that pod"},
			})
		}
		if a.Error != "" {
			add(Cause{Message: "the last pass failed: " + a.Error, Changes: []string{"the agent repeats the pass"}})
		}
	}
	if x.Plan != nil {
		for _, drift := range x.Plan.Drift {
			add(Cause{Message: "changed outside podctl: " + drift})
		}
	}
	return append(causes, x.heldCauses("")...)
}

// deletion explains that the pod is being deleted; nil if it is not.
func (x *explainer) deletion() *Cause {
	at := x.Status.DeletionTimestamp
	switch {
	case at == nil:
		return nil
	case model.IsOver(&x.Status.Status):
		return x.remainingObject()
	}
	return &Cause{
		Reason: model.Deleted, Message: "the pod is being deleted" + graceLeft(x.Status, x.Now), Until: &at.Time,
		Changes: []string{"a shorter grace period ends it earlier: " + x.deleteCommand() + " --grace-period=1"},
	}
}

// remainingObject explains what an object that is being deleted waits for after its pod has ended, such as finalizers;
// nil if the agent does not know.
func (x *explainer) remainingObject() *Cause {
	if x.Agent == nil || len(x.Agent.Waiting) == 0 {
		return nil
	}
	return &Cause{
		Reason:  model.Deleted,
		Message: "the pod is being deleted, and its object waits for " + strings.Join(x.Agent.Waiting, "; "),
		Changes: []string{"the removal of the object from the API server"},
	}
}

// graceLeft describes the rest of the grace period of a pod that is being deleted; empty if it has none.
func graceLeft(pod *v1.Pod, now time.Time) string {
	grace := pod.DeletionGracePeriodSeconds
	if grace == nil {
		return ""
	}
	left := max(pod.DeletionTimestamp.Sub(now), 0)
	return fmt.Sprintf(": %.0f s of %d s are left", left.Seconds(), *grace)
}

// heldCauses returns the holds of the next pass for a container, or for the pod.
func (x *explainer) heldCauses(container string) []Cause {
	if x.Plan == nil {
		return nil
	}
	var causes []Cause
	for i := range x.Plan.Holds {
		h := &x.Plan.Holds[i]
		recorded := h.Evicted && x.Memory != nil && x.Memory.Eviction != nil || h.Admission && x.Plan.Rejection != nil
		if h.Container == container && !recorded {
			c := Cause{Reason: h.Reason, Message: h.Message, Until: h.Until, Changes: x.afterHold(h)}
			causes = append(causes, c)
		}
	}
	return causes
}

// container explains the state of one container.
func (x *explainer) container(ref podspec.ContainerRef) Subject {
	s := Subject{Container: ref.Name, ContainerType: ref.Type, State: "Waiting"}
	status := statusOf(x.Status, ref.Name)
	switch {
	case status.State.Running != nil:
		s.State, s.Since = "Running", &status.State.Running.StartedAt.Time
	case status.State.Terminated != nil:
		s.State, s.Since = "Terminated", &status.State.Terminated.FinishedAt.Time
	}
	s.Causes = slices.Concat(
		x.heldCauses(ref.Name), x.nextCauses(ref), x.notReady(ref, status), x.stateCauses(ref, status), lastEnd(status))
	if s.Causes == nil {
		s.Causes = []Cause{}
	}
	return s
}

// nextCauses explains what the next pass changes, or what it waits for.
func (x *explainer) nextCauses(ref podspec.ContainerRef) []Cause {
	if x.Plan == nil {
		return nil
	}
	o := x.Plan.Object(ref.Name)
	if o == nil {
		return x.waits(ref)
	}
	because := func(text, verb string) []Cause {
		return []Cause{{Reason: o.Reason, Message: text + ": " + o.Message, Changes: x.afterPass(verb)}}
	}
	switch o.Action { //nolint:exhaustive // the others change nothing about the container
	case plan.Started:
		return because("it is not started yet", "starts")
	case plan.Replaced:
		return because("it is outdated", "replaces")
	case plan.Stopped:
		return because("it must stop", "stops")
	case plan.Updated:
		return because("its resources are outdated", "updates")
	}
	return nil
}

// waits explains why the plan does not mention a container: others come first.
func (x *explainer) waits(ref podspec.ContainerRef) []Cause {
	if statusOf(x.Status, ref.Name).State.Waiting == nil || model.IsOver(&x.Status.Status) {
		return nil
	}
	if len(x.Plan.WaitingFor) > 0 {
		first := strings.Join(x.Plan.WaitingFor, ", ")
		return []Cause{{Message: "it starts later: the pod waits for " + first, Changes: []string{first}}}
	}
	if len(x.Plan.Later) > 0 {
		return []Cause{{Message: "it starts later: " + x.Plan.Later[0]}}
	}
	return nil
}

// stateCauses explains how a container came into its state.
func (x *explainer) stateCauses(ref podspec.ContainerRef, status *v1.ContainerStatus) []Cause {
	switch {
	case status.State.Running != nil:
		if d := x.newest(plan.StartContainer, ref.Name); d != nil {
			return []Cause{{Reason: d.Reason, Message: "it was started: " + reasonText(d)}}
		}
	case status.State.Terminated != nil:
		began := status.State.Terminated.StartedAt.Time
		if d := x.newest(plan.StopContainer, ref.Name); d != nil && !d.Last.Before(began) {
			return []Cause{{Reason: d.Reason, Message: "it was stopped: " + reasonText(d)}}
		}
		c := endOf("it", status.State.Terminated)
		c.Changes = x.startsAgain(ref)
		return []Cause{c}
	case x.failed(ref.Name) && len(x.heldCauses(ref.Name)) == 0:
		// The message of the status has no values of Secrets.
		reason := model.Reason(status.State.Waiting.Reason)
		c := Cause{Reason: reason, Message: "the last start failed: " + status.State.Waiting.Message}
		c.Changes = x.afterFailure(reason, ref)
		return []Cause{c}
	}
	return nil
}

// failed reports whether the last start of a container failed.
func (x *explainer) failed(name string) bool {
	if x.Memory == nil {
		return false
	}
	_, failed := x.Memory.StartErrors[name]
	return failed
}

// startsAgain returns what would start an ended container again. It is nil if the container starts by itself, or never.
func (x *explainer) startsAgain(ref podspec.ContainerRef) []string {
	switch {
	case !x.stays(ref.Name) || ref.Type == podspec.Ephemeral:
		return nil
	case ref.Type == podspec.Init:
		return []string{"a new sandbox, in which all init containers run again"}
	}
	return []string{fmt.Sprintf("podctl restart %s %s, because restartPolicy %s does not restart it", x.Pod, ref.Name,
		podstatus.RestartPolicy(x.Status, ref.Container))}
}

// stays reports whether a container that has ended stays ended, while others run.
func (x *explainer) stays(name string) bool {
	if model.IsOver(&x.Status.Status) || x.Plan == nil {
		return false
	}
	o := x.Plan.Object(name)
	return o != nil && o.Action == plan.Kept
}

// newest returns the newest decision of a kind about a container that was carried out; nil if there is none.
func (x *explainer) newest(kind plan.Kind, container string) *state.Decision {
	for i := range slices.Backward(x.History.Decisions) {
		d := &x.History.Decisions[i]
		if d.Kind == string(kind) && d.Container == container && d.Error == "" {
			return d
		}
	}
	return nil
}

// notReady explains why a running container is not ready.
func (x *explainer) notReady(ref podspec.ContainerRef, status *v1.ContainerStatus) []Cause {
	if status.State.Running == nil || status.Ready || ref.Type == podspec.Init || ref.Type == podspec.Ephemeral {
		return nil
	}
	_, id, _ := strings.Cut(status.ContainerID, "://")
	for _, t := range []model.ProbeType{model.Startup, model.Readiness} {
		if model.ProbeOf(ref.Container, t) == nil {
			continue
		}
		record, known := x.probe(id, t)
		if known && record.Result == model.ProbeSuccess {
			continue
		}
		message := fmt.Sprintf("it is not ready: its %s probe has not passed yet", t)
		if known && record.Result == model.ProbeFailure {
			message = fmt.Sprintf("it is not ready: %s probe failed", t)
			if record.Message != "" {
				message += ": " + record.Message
			}
		}
		return []Cause{{Message: message, Changes: x.afterProbe()}}
	}
	return nil
}

func (x *explainer) probe(id string, t model.ProbeType) (model.ProbeRecord, bool) {
	if x.Memory == nil {
		return model.ProbeRecord{}, false
	}
	record, known := x.Memory.Probes[id][t]
	return record, known
}

// lastEnd explains how the previous run of a container ended.
func lastEnd(status *v1.ContainerStatus) []Cause {
	if t := status.LastTerminationState.Terminated; t != nil {
		return []Cause{endOf("its previous run", t)}
	}
	return nil
}

// endOf explains how a run ended. what is the subject of the sentence.
func endOf(what string, t *v1.ContainerStateTerminated) Cause {
	c := Cause{
		Reason: model.Reason(t.Reason),
		Message: fmt.Sprintf("%s ended at %s with exit code %s",
			what, t.FinishedAt.UTC().Format(time.RFC3339), model.ExitText(t.ExitCode)),
	}
	if text := podstatus.ExitReason(t.Reason, t.Message); text != "" {
		c.Message += ": " + text
	}
	return c
}

func reasonText(d *state.Decision) string {
	if d.Message == "" {
		return string(d.Reason)
	}
	return d.Message
}

// statusOf returns the status of a container. A container without a status waits.
func statusOf(pod *v1.Pod, name string) *v1.ContainerStatus {
	waiting := v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}
	return cmp.Or(model.StatusOf(&pod.Status, name), &v1.ContainerStatus{State: waiting})
}
