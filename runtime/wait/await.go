package wait

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
)

// Await watches a pod until it has reached a goal. It only runs the pod's probes. A failed pod ends the wait, because
// it can reach no other goal than its end.
func (x *Waiter) Await(ctx context.Context, desired *podspec.Desired, goal Goal) error {
	return (&podWait{on: x, desired: desired, goal: goal}).await(ctx)
}

// Follow makes one pass over a pod that an agent manages, and watches it until it has reached a goal. It leaves other
// passes and the probes to the agent, because two processes that alternate at the pod's lock would delay each other.
func (x *Waiter) Follow(
	ctx context.Context, desired *podspec.Desired, goal Goal, opts executor.Options,
) (*executor.Outcome, error) {
	w := &podWait{on: x, desired: desired, goal: goal, opts: opts, follows: true}
	outcome, err := w.apply(ctx)
	if err != nil {
		return outcome, w.translate(ctx, err)
	}
	w.retryAt = time.Time{}
	return outcome, w.await(ctx)
}

// await watches the pod until it has reached the goal.
func (w *podWait) await(ctx context.Context) error {
	return w.loop(ctx, func() (done, again bool, err error) {
		done, err = w.poll(ctx, model.RefOf(w.desired.Pod))
		return done, false, err
	})
}

// poll runs the probes that are due and checks the state of the pod.
func (w *podWait) poll(ctx context.Context, ref model.PodRef) (bool, error) {
	if w.goal != Deleted && !w.follows {
		if err := w.probe(ctx); err != nil {
			return false, err
		}
	}
	in, s, err := w.on.observer.Input(ctx, ref, w.desired, plan.Options{})
	if err != nil {
		return false, err
	}
	w.in, w.seen = in, fingerprint(&in.Observed)
	if w.goal == Deleted {
		w.missing = []string{"the pod is there"}
		return s.Checkpoint.Applied == nil && len(s.Sandboxes)+len(s.Containers) == 0, nil
	}
	status := podstatus.Of(in.State())
	w.missing = nil
	switch {
	case w.reached(&status):
		return true, w.ended(&status)
	case status.Phase == v1.PodFailed, status.Phase == v1.PodSucceeded && w.goal == Started:
		return false, w.blocked("the pod " + Ending(&status))
	}
	p := plan.Make(in)
	w.report(in, &status, p)
	err = w.finished(&status, p)
	w.missing = append(w.missing, unready(in, &status)...)
	return false, err
}
