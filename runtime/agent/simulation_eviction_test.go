package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// preempt lets a critical pod need the resources of a pod that runs.
func (l *life) preempt(uid types.UID) {
	if l.pods[uid] == nil {
		return
	}
	ref := model.RefOf(l.pods[uid].desired.Pod)
	l.post("", "preemption of "+string(uid), func() {
		l.preempted[uid] = true
		l.agent.evictor.preempt(l.now, &model.Preemption{Pods: []model.PodRef{ref}, Resource: "cpu"})
	})
}

// evicted returns why a pass must leave a pod evicted: it evicts the pod, or the manifest has not changed since the
// eviction, or its leftovers are not removed yet (plan.Input.evicted).
func (w *world) evicted(d *podspec.Desired, now *model.Eviction) *model.Eviction {
	p := w.pods[d.Pod.UID]
	switch {
	case p == nil:
		return nil
	case p.eviction == nil:
		return now
	case p.eviction.Done && versionOf(p.desired) != versionOf(d):
		return nil
	}
	return p.eviction
}

// evict records the eviction of a pod, and removes all of the pod but its record.
func (w *world) evict(
	ctx context.Context, d *podspec.Desired, seen []container, why *model.Eviction,
) (*executor.Outcome, error) {
	p, uid := w.pods[d.Pod.UID], string(d.Pod.UID)
	if p.eviction == nil {
		if err := w.write("eviction of "+uid, func() { p.eviction = why }); err != nil {
			return nil, err
		}
	}
	var steps []step
	for i := range seen {
		if c := w.find(seen[i].id); seen[i].running {
			steps = append(steps, w.stops(c, d))
		}
	}
	for i := range seen {
		steps = append(steps, w.removes(w.find(seen[i].id)))
	}
	outcome := w.execute(ctx, model.RefOf(d.Pod), steps)
	outcome.Plan.Eviction, outcome.Desired = why, d
	if len(outcome.Failed) > 0 || p.eviction.Done {
		return outcome, nil
	}
	done := *p.eviction
	done.Done = true
	if err := w.write("end of the eviction of "+uid, func() { p.eviction = &done }); err != nil {
		outcome.Failed = append(outcome.Failed, executor.StepError{Step: &plan.Step{}, Err: err})
	}
	return outcome, nil
}
