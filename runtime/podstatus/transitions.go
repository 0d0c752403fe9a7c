package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/model"
)

// addTransitions adds the times at which a process that watches the pod saw conditions change (kubelet:
// updateLastTransitionTime). Without such a process there are no times. A pod cannot be ready for longer than its
// containers run, so a later start of a container counts.
func addTransitions(p *Pod, s *v1.PodStatus) {
	for i := range s.Conditions {
		c := &s.Conditions[i]
		seen, ok := p.Observed.Memory.Conditions[c.Type]
		if !ok || seen.Status != c.Status || c.Type == v1.PodReady && dependsOnAPI(p) {
			continue
		}
		at := seen.At
		if c.Status == v1.ConditionTrue && (c.Type == v1.PodReady || c.Type == v1.ContainersReady) {
			at = latestStart(s, at)
		}
		c.LastTransitionTime = metav1.Time{Time: at.Truncate(time.Second)}
	}
}

// dependsOnAPI reports whether Ready can change without a pass: by readiness gates, whose conditions are in the API.
// Its time is then recorded there only.
func dependsOnAPI(p *Pod) bool {
	return p.Desired != nil && p.Desired.FromCluster() && len(p.Manifest.Spec.ReadinessGates) > 0
}

// latestStart returns the latest start of a regular container, or at if that is later.
func latestStart(s *v1.PodStatus, at time.Time) time.Time {
	for i := range s.ContainerStatuses {
		if r := s.ContainerStatuses[i].State.Running; r != nil && r.StartedAt.After(at) {
			at = r.StartedAt.Time
		}
	}
	return at
}

// Transitions returns the conditions of a status with the times since which they have their status: recorded ones, and
// now for changes. changed is false if all are recorded.
func Transitions(
	before map[v1.PodConditionType]model.Transition, s *v1.PodStatus, now time.Time,
) (after map[v1.PodConditionType]model.Transition, changed bool) {
	after = make(map[v1.PodConditionType]model.Transition, len(s.Conditions))
	for i := range s.Conditions {
		c := &s.Conditions[i]
		seen, ok := before[c.Type]
		if !ok || seen.Status != c.Status {
			seen, changed = model.Transition{Status: c.Status, At: now}, true
		}
		after[c.Type] = seen
	}
	return after, changed || len(after) != len(before)
}
