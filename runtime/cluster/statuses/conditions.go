package statuses

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/podstatus"
)

// owned reports whether only podctl sets a condition (kubelet: PodConditionByKubelet).
func owned(kind v1.PodConditionType) bool {
	switch kind {
	case v1.PodScheduled, v1.PodReady, v1.PodInitialized, v1.ContainersReady, v1.PodReadyToStartContainers,
		v1.PodResizePending, v1.PodResizeInProgress, v1.AllContainersRestarting:
		return true
	case v1.DisruptionTarget:
	}
	return false
}

// mergeConditions sets the conditions: those of other programs as they are in the API, then podctl's. DisruptionTarget
// is shared with other programs: podctl sets it only together with a terminal phase. If no condition changes, their
// order stays too, so that nothing is sent.
func (m *Merge) mergeConditions(s *v1.PodStatus, ends bool) {
	var merged []v1.PodCondition
	for i := range m.API.Status.Conditions {
		if c := m.API.Status.Conditions[i]; !owned(c.Type) {
			merged = append(merged, c)
		}
	}
	own := m.readiness(s)
	for i := range own {
		c := own[i]
		switch {
		case owned(c.Type):
			merged = append(merged, m.stamped(c))
		case c.Type == v1.DisruptionTarget && ends:
			merged = slices.DeleteFunc(merged, func(c v1.PodCondition) bool { return c.Type == v1.DisruptionTarget })
			merged = append(merged, m.stamped(c))
		}
	}
	if sameConditions(m.API.Status.Conditions, merged) {
		merged = slices.Clone(m.API.Status.Conditions)
	}
	s.Conditions = merged
}

// readiness returns podctl's conditions with Ready after the readiness gates, whose conditions are in the API. A pod
// with a terminal phase is never ready (kubernetes#108594).
func (m *Merge) readiness(s *v1.PodStatus) []v1.PodCondition {
	conditions := slices.Clone(s.Conditions)
	i := conditionIn(conditions, v1.ContainersReady)
	if i < 0 {
		return conditions
	}
	ready := &conditions[i]
	if terminal(s.Phase) && ready.Status == v1.ConditionTrue {
		ready.Status, ready.Reason, ready.Message = v1.ConditionFalse, "PodCompleted", ""
		if s.Phase == v1.PodFailed {
			ready.Reason = "PodFailed"
		}
	}
	if j := conditionIn(conditions, v1.PodReady); j >= 0 {
		generation := conditions[j].ObservedGeneration
		at := conditions[j].LastTransitionTime
		was := conditions[j].Status
		conditions[j] = podstatus.Ready(m.API, *ready, m.API.Status.Conditions)
		conditions[j].ObservedGeneration, conditions[j].LastTransitionTime = generation, metav1.Time{}
		if conditions[j].Status == was {
			conditions[j].LastTransitionTime = at
		}
	}
	return conditions
}

// stamped returns a condition with its observed generation and the time since which it has its status: the time in the
// API, then the one of a merge that the API does not have yet, then the one that podctl recorded, and otherwise now.
func (m *Merge) stamped(c v1.PodCondition) v1.PodCondition {
	var old, before v1.PodCondition
	if i := conditionIn(m.API.Status.Conditions, c.Type); i >= 0 {
		old = m.API.Status.Conditions[i]
	}
	if m.Before != nil {
		if i := conditionIn(m.Before.Conditions, c.Type); i >= 0 {
			before = m.Before.Conditions[i]
		}
	}
	c.ObservedGeneration = m.conditionGeneration(&c, &old)
	switch {
	case old.Status == c.Status && !old.LastTransitionTime.IsZero():
		c.LastTransitionTime, c.LastProbeTime = old.LastTransitionTime, old.LastProbeTime
	case before.Status == c.Status && !before.LastTransitionTime.IsZero():
		c.LastTransitionTime = before.LastTransitionTime
	case c.LastTransitionTime.IsZero() || c.LastTransitionTime.Before(&old.LastTransitionTime):
		c.LastTransitionTime = metav1.Time{Time: m.Now.Truncate(time.Second)}
	}
	return c
}

// conditionGeneration returns the observed generation of a condition. A resize has the one of the version that asks for
// it.
func (m *Merge) conditionGeneration(c, old *v1.PodCondition) int64 {
	resize := c.Type == v1.PodResizePending || c.Type == v1.PodResizeInProgress
	if resize && c.ObservedGeneration != 0 {
		return c.ObservedGeneration
	}
	return m.generation(old.ObservedGeneration)
}

func conditionIn(conditions []v1.PodCondition, kind v1.PodConditionType) int {
	return slices.IndexFunc(conditions, func(c v1.PodCondition) bool { return c.Type == kind })
}

// sameConditions reports whether two lists have the same conditions in any order.
func sameConditions(a, b []v1.PodCondition) bool {
	if len(a) != len(b) {
		return false
	}
	return !slices.ContainsFunc(a, func(c v1.PodCondition) bool {
		i := conditionIn(b, c.Type)
		return i < 0 || !sameCondition(&c, &b[i])
	})
}

func sameCondition(a, b *v1.PodCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.ObservedGeneration == b.ObservedGeneration && a.LastTransitionTime.Equal(&b.LastTransitionTime) &&
		a.LastProbeTime.Equal(&b.LastProbeTime)
}
