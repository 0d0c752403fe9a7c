package executor

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
)

// TestConditionsOfAWatchedPod checks that a watched pass records changes of conditions and nothing else. Other passes
// leave the conditions as they are.
func TestConditionsOfAWatchedPod(t *testing.T) {
	l := newLab(t, "i:1")
	pass := func(opts Options) (ref model.PodRef, at time.Time) {
		l.clock.Advance(time.Minute)
		p := l.plan(model.PodRef{}, onePod())
		at = l.clock.Now()
		if outcome, err := p.run(opts); err != nil || outcome.Err() != nil {
			t.Fatal(err, outcome.Err())
		}
		return p.plan.Pod, at
	}
	watched := Options{Watched: true}
	ref, made := pass(watched)
	if c := l.checkpoint(ref).Conditions; c[v1.PodReady].Status != v1.ConditionFalse || c[v1.PodReady].At.Before(made) {
		t.Errorf("conditions of a new pod: %v", c)
	}
	if pass(Options{}); l.checkpoint(ref).Conditions[v1.PodReady].Status != v1.ConditionFalse {
		t.Error("a pass without Watched recorded conditions")
	}
	_, seen := pass(watched)
	after := l.checkpoint(ref).Conditions
	if r := after[v1.PodReady]; r.Status != v1.ConditionTrue || r.At.Before(seen) || !after[v1.PodScheduled].At.Before(seen) {
		t.Errorf("conditions once the pod runs: %v, observed at %v", after, seen)
	}
	pass(watched)
	if again := l.checkpoint(ref).Conditions; again[v1.PodReady] != after[v1.PodReady] {
		t.Errorf("conditions %v although the pod has not changed, before %v", again, after)
	}
}
