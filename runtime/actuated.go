package runtime

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// noteBegun keeps the resources with which containers and sandbox are about to be made,
// before they are: one that a kill leaves without a word would look as if it had to be
// resized. They count once the runtime has a record of that attempt (kubelet:
// SetActuatedResources, when a container is created).
func (x *execution) noteBegun(before *v1.Pod) {
	j := x.journal
	if j.Actuated == nil {
		j.Actuated = &model.Actuated{}
	}
	if j.Actuated.Containers == nil {
		j.Actuated.Containers = map[string]v1.ResourceRequirements{}
	}
	for _, ref := range podspec.Containers(x.desired.Pod) {
		if _, known := j.Actuated.Containers[ref.Name]; !known {
			j.Actuated.Containers[ref.Name] = resourcesOf(before, ref)
		}
	}
	j.Begun = map[string]state.Begun{}
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		if s.Kind == plan.RunSandbox {
			j.Begun[state.BegunPod] = state.Begun{Attempt: s.Attempt, Resources: x.desired.Pod.Spec.Resources}
		}
		if ref, ok := podspec.FindContainer(x.desired.Pod, s.Container); ok && s.Kind == plan.StartContainer {
			j.Begun[ref.Name] = state.Begun{Attempt: s.Attempt, Resources: &ref.Resources}
		}
	}
}

// settleBegun takes what was about to be made when podctl was killed for made if there is
// a record of it, and forgets the rest.
func settleBegun(s *snapshot.Pod) {
	j := s.Journal
	for _, c := range s.Containers {
		if m := c.Status.GetMetadata(); j.Begun[m.GetName()].Attempt == m.GetAttempt() {
			j.Settle(m.GetName())
		}
	}
	for _, sandbox := range s.Sandboxes {
		if j.Begun[state.BegunPod].Attempt == sandbox.GetMetadata().GetAttempt() {
			j.Settle(state.BegunPod)
		}
	}
	j.Begun = nil
}

// resourcesOf are the resources a container without a record is taken to have:
// those of the manifest applied before, or else of this one.
func resourcesOf(before *v1.Pod, ref podspec.ContainerRef) v1.ResourceRequirements {
	if before != nil {
		if old, ok := podspec.FindContainer(before, ref.Name); ok {
			return old.Resources
		}
	}
	return ref.Resources
}

// noteResizedPod keeps the pod's own resources once all that depends on them has
// been changed: until then the change is still to be made.
func (x *execution) noteResizedPod() {
	updates := slices.ContainsFunc(x.plan.Steps, func(s plan.Step) bool { return s.Kind == plan.UpdatePod })
	if updates && len(x.failed)+len(x.left) == 0 {
		x.journal.Actuated.Pod = x.desired.Pod.Spec.Resources
	}
}
