package executor

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/state"
)

// note records the result of a step.
func (x *checkpointer) note(change func(*state.Checkpoint)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change(x.record)
}

func (x *checkpointer) noteFailure(container string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.record.StartErrors == nil {
		x.record.StartErrors = map[string]model.StartError{}
	}
	failure := model.StartError{
		Reason:  model.ReasonOf(err, model.RunContainerError),
		Message: x.report.redactor.Text(kubeletText(err)),
		At:      x.now(),
	}
	if image := (*images.Error)(nil); x.opts.PullBackoff && errors.As(err, &image) {
		credentials := x.desired.PullDigest()
		last := model.PullFailure(x.record.StartErrors, image.Image, credentials)
		failure = failure.Postponed(image.Image, credentials, last)
		x.report.pullPaused(container, image.Image)
	}
	x.record.StartErrors[container] = failure
}

// noteHolds records why podctl did not try to start containers. The pod's status shows these reasons, as a kubelet's
// does. It reports whether the record has changed.
func (x *checkpointer) noteHolds() bool {
	news := false
	for i := range x.plan.Holds {
		h := &x.plan.Holds[i]
		if !h.Unstartable {
			continue
		}
		before, text := x.record.StartErrors[h.Container], statusText(h)
		if before.Reason != h.Reason || before.Message != text {
			x.noteFailure(h.Container, model.WithReason(h.Reason, errors.New(text)))
			news = true
		}
	}
	return news
}

// noteConditions records when the conditions of the pod changed. It reports whether one has changed.
func (x *checkpointer) noteConditions() (changed bool) {
	if !x.opts.Watched {
		return false
	}
	x.record.Conditions, changed = podstatus.Transitions(x.record.Conditions, &x.status, x.now().UTC())
	return changed
}

// completion returns how the pod finished and how its containers ended, from the record and from this pass; nil if
// nothing is new. With it, the pod neither runs again nor changes its status if the runtime loses its records. A
// rejected pod has not started, and an evicted pod may still have to be stopped.
func (x *checkpointer) completion() *model.Completion {
	before := x.record.Completion
	stops := x.record.Eviction != nil && x.plan.KillPod
	if !model.IsOver(&x.status) || x.record.Rejection != nil || stops {
		return nil
	}
	ends := podstatus.Ends(&x.status)
	if before == nil {
		return &model.Completion{
			Phase: x.status.Phase, At: x.now(), DesiredDigest: x.desired.Digest(), Containers: ends,
		}
	}
	maps.Copy(ends, before.Containers)
	if len(ends) == len(before.Containers) {
		return nil
	}
	done := *before
	done.Containers = ends
	return &done
}

// noteInFlight records the resources of the containers and sandbox that are about to be created. Without them, a
// container that was created before podctl was killed would seem to need a resize. The values count once the runtime
// has a record of that attempt (kubelet: SetActuatedResources, when a container is created).
func (x *checkpointer) noteInFlight(before *v1.Pod) {
	c := x.record
	if c.Actuated == nil {
		c.Actuated = &model.Actuated{}
		if !updatesPod(x.plan) {
			// An adopted pod is assumed to have the resources of the manifest, like its containers.
			c.Actuated.Pod = cmp.Or(before, x.desired.Pod).Spec.Resources
		}
	}
	if exists := x.observed.CgroupExists; c.Actuated.Cgroup == nil && exists != nil && *exists {
		c.Actuated.Cgroup = new(podspec.Totals(cmp.Or(before, x.desired.Pod)))
	}
	if c.Actuated.Containers == nil {
		c.Actuated.Containers = map[string]v1.ResourceRequirements{}
	}
	for _, ref := range podspec.Containers(x.desired.Pod) {
		_, known := c.Actuated.Containers[ref.Name]
		own, found := x.plan.Found[ref.Name]
		switch {
		case known, found && own == nil:
		case found:
			c.Actuated.Containers[ref.Name] = *own
		default:
			c.Actuated.Containers[ref.Name] = resourcesOf(before, ref)
		}
	}
	c.InFlight = map[string]state.InFlight{}
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		if s.Kind == plan.RunSandbox {
			c.InFlight[state.ThePod] = state.InFlight{Attempt: s.Attempt, Resources: x.desired.Pod.Spec.Resources}
		}
		if ref, ok := podspec.FindContainer(x.desired.Pod, s.Container); ok && s.Kind == plan.StartContainer {
			c.InFlight[ref.Name] = state.InFlight{Attempt: s.Attempt, Resources: &ref.Resources}
		}
	}
}

// resourcesOf returns the resources that a container without a record is assumed to have: those of the manifest applied
// before, or otherwise of this one.
func resourcesOf(before *v1.Pod, ref podspec.ContainerRef) v1.ResourceRequirements {
	if before != nil {
		if old, ok := podspec.FindContainer(before, ref.Name); ok {
			return old.Resources
		}
	}
	return ref.Resources
}

// updatesPod reports whether a plan changes the pod's own resources.
func updatesPod(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Kind == plan.UpdatePod })
}
