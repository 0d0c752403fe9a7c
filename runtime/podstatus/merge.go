package podstatus

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/model"
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

// ConditionMerge is the input of a merge of podctl's conditions into those in the API. Nothing in it is changed.
type ConditionMerge struct {
	// Pod has the readiness gates. API are its conditions in the API.
	Pod *v1.Pod
	API []v1.PodCondition
	// Before are the results of the last merge, which the API may not have yet.
	Before []v1.PodCondition
	// Generation is the observed generation of podctl's conditions. It never goes back.
	Generation int64
	// Ends reports that the pod gets its terminal phase. Now is the time of a change that was not recorded; if zero,
	// the change has no time.
	Ends bool
	Now  time.Time
}

// Merge returns the conditions of a status as the API must have them: those of other programs as they are in the API,
// then podctl's. DisruptionTarget is shared with other programs: podctl sets it only together with a terminal phase. If
// no condition changes, their order stays too, so that nothing is sent.
func (m *ConditionMerge) Merge(s *v1.PodStatus) []v1.PodCondition {
	var merged []v1.PodCondition
	for i := range m.API {
		if c := m.API[i]; !owned(c.Type) {
			merged = append(merged, c)
		}
	}
	own := m.readiness(s)
	for i := range own {
		c := own[i]
		switch {
		case owned(c.Type):
			merged = append(merged, m.stamped(c))
		case c.Type == v1.DisruptionTarget && m.Ends:
			merged = slices.DeleteFunc(merged, func(c v1.PodCondition) bool { return c.Type == v1.DisruptionTarget })
			merged = append(merged, m.stamped(c))
		}
	}
	if sameConditions(m.API, merged) {
		merged = slices.Clone(m.API)
	}
	return merged
}

// readiness returns podctl's conditions with Ready after the readiness gates, whose conditions are in the API. A pod
// with a terminal phase is never ready (kubernetes#108594).
func (m *ConditionMerge) readiness(s *v1.PodStatus) []v1.PodCondition {
	conditions := slices.Clone(s.Conditions)
	i := conditionIn(conditions, v1.ContainersReady)
	if i < 0 {
		return conditions
	}
	ready := &conditions[i]
	if model.IsOver(s) && ready.Status == v1.ConditionTrue {
		ready.Status, ready.Reason, ready.Message = v1.ConditionFalse, "PodCompleted", ""
		if s.Phase == v1.PodFailed {
			ready.Reason = "PodFailed"
		}
	}
	if j := conditionIn(conditions, v1.PodReady); j >= 0 {
		generation := conditions[j].ObservedGeneration
		at := conditions[j].LastTransitionTime
		was := conditions[j].Status
		conditions[j] = Ready(m.Pod, *ready, m.API)
		conditions[j].ObservedGeneration, conditions[j].LastTransitionTime = generation, metav1.Time{}
		if conditions[j].Status == was {
			conditions[j].LastTransitionTime = at
		}
	}
	return conditions
}

// stamped returns a condition with its observed generation and the time since which it has its status: the time in the
// API, then the one of a merge that the API does not have yet, then the one that podctl recorded, and otherwise now.
func (m *ConditionMerge) stamped(c v1.PodCondition) v1.PodCondition {
	var old, before v1.PodCondition
	if i := conditionIn(m.API, c.Type); i >= 0 {
		old = m.API[i]
	}
	if i := conditionIn(m.Before, c.Type); i >= 0 {
		before = m.Before[i]
	}
	c.ObservedGeneration = m.conditionGeneration(&c, &old)
	switch {
	case old.Status == c.Status && !old.LastTransitionTime.IsZero():
		c.LastTransitionTime, c.LastProbeTime = old.LastTransitionTime, old.LastProbeTime
	case before.Status == c.Status && !before.LastTransitionTime.IsZero():
		c.LastTransitionTime = before.LastTransitionTime
	case m.Now.IsZero() && c.LastTransitionTime.IsZero():
	case c.LastTransitionTime.IsZero() || c.LastTransitionTime.Before(&old.LastTransitionTime):
		c.LastTransitionTime = metav1.Time{Time: m.Now.Truncate(time.Second)}
	}
	return c
}

// conditionGeneration returns the observed generation of a condition. A resize has the one of the version that asks for
// it.
func (m *ConditionMerge) conditionGeneration(c, old *v1.PodCondition) int64 {
	resize := c.Type == v1.PodResizePending || c.Type == v1.PodResizeInProgress
	if resize && c.ObservedGeneration != 0 {
		return c.ObservedGeneration
	}
	return max(m.Generation, old.ObservedGeneration)
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
