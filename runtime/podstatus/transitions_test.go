package podstatus

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/model"
)

// TestTransitions checks that a condition keeps its time until its status changes.
func TestTransitions(t *testing.T) {
	first, second := time.Unix(1000, 0), time.Unix(2000, 0)
	status := func(ready v1.ConditionStatus) *v1.PodStatus {
		return &v1.PodStatus{Conditions: []v1.PodCondition{
			{Type: v1.PodScheduled, Status: v1.ConditionTrue},
			{Type: v1.PodReady, Status: ready},
		}}
	}
	seen, changed := Transitions(nil, status(v1.ConditionFalse), first)
	if !changed || len(seen) != 2 || !seen[v1.PodReady].At.Equal(first) {
		t.Errorf("seen first: %v, %v", changed, seen)
	}
	if seen, changed = Transitions(seen, status(v1.ConditionFalse), second); changed || !seen[v1.PodReady].At.Equal(first) {
		t.Errorf("nothing has changed: %v, %v", changed, seen)
	}
	seen, changed = Transitions(seen, status(v1.ConditionTrue), second)
	if !changed || !seen[v1.PodReady].At.Equal(second) || !seen[v1.PodScheduled].At.Equal(first) {
		t.Errorf("ready: %v, %v", changed, seen)
	}
	if seen, changed = Transitions(seen, &v1.PodStatus{}, second); !changed || len(seen) != 0 {
		t.Errorf("none is left: %v, %v", changed, seen)
	}
}

// TestTransitionTimes checks that conditions show the time of the observed change. A condition with another status
// shows none, and a pod is not ready for longer than its containers run.
func TestTransitionTimes(t *testing.T) {
	seen, started := time.Unix(1000, 5e8), time.Unix(3000, 0)
	p := &Pod{Observed: &model.Observed{}}
	p.Observed.Memory.Conditions = map[v1.PodConditionType]model.Transition{
		v1.PodScheduled:    {Status: v1.ConditionTrue, At: seen},
		v1.PodReady:        {Status: v1.ConditionTrue, At: seen},
		v1.ContainersReady: {Status: v1.ConditionTrue, At: started.Add(time.Hour)},
		v1.PodInitialized:  {Status: v1.ConditionFalse, At: seen},
	}
	s := &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: started}}},
	}}}
	for _, t := range []v1.PodConditionType{
		v1.PodScheduled, v1.PodReady, v1.ContainersReady, v1.PodInitialized, v1.PodReadyToStartContainers,
	} {
		s.Conditions = append(s.Conditions, trueCondition(t))
	}
	addTransitions(p, s)
	for i, want := range []time.Time{time.Unix(1000, 0), started, started.Add(time.Hour), {}, {}} {
		if c := s.Conditions[i]; !c.LastTransitionTime.Time.Equal(want) {
			t.Errorf("%s: %v, want %v", c.Type, c.LastTransitionTime, want)
		}
	}
}
