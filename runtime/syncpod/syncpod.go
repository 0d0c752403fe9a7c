package syncpod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/plan/planfile"
	"github.com/podctl/podctl/runtime/state"
)

// maxReplans is how often one invocation makes a new plan because the actual state differed from the observed one.
const maxReplans = 3

// Syncer makes passes over one pod at a time.
type Syncer struct {
	locker   *state.Locker
	digests  *observe.Digests
	observer *observe.Observer
	executor *executor.Executor
	// Changed is called if a pass may have changed a pod; it may be nil.
	Changed func(ctx context.Context, uid types.UID)
	// Guard is called before the network of a pod with hostPorts is set up; it may be nil.
	Guard func()
}

// New returns a Syncer.
func New(locker *state.Locker, digests *observe.Digests, observer *observe.Observer, x *executor.Executor) *Syncer {
	return &Syncer{locker: locker, digests: digests, observer: observer, executor: x}
}

// Plan observes a pod and decides what a pass would do to it. It changes nothing.
func (s *Syncer) Plan(ctx context.Context, desired *podspec.Desired, opts plan.Options) (*plan.Plan, error) {
	in, _, err := s.observer.Input(ctx, model.RefOf(desired.Pod), desired, opts)
	if err != nil {
		return nil, err
	}
	return planfile.Make(in), nil
}

// Apply makes one pass: it locks the pod, observes, plans and executes. If the actual state differs from the observed
// one, it makes a new plan, at most three times.
func (s *Syncer) Apply(
	ctx context.Context, desired *podspec.Desired, opts executor.Options,
) (*executor.Outcome, error) {
	return s.pass(ctx, model.RefOf(desired.Pod), desired, opts)
}

// Delete stops and removes a pod and everything podctl created for it. It works like Apply without a desired pod.
func (s *Syncer) Delete(ctx context.Context, ref model.PodRef, opts executor.Options) (*executor.Outcome, error) {
	return s.pass(ctx, ref, nil, opts)
}

// NotePullPause records until when the failed pulls of a pass are not retried.
func (s *Syncer) NotePullPause(ctx context.Context, outcome *executor.Outcome, until time.Time) (err error) {
	lock, err := s.locker.Lock(ctx, outcome.Plan.Pod)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	return s.executor.NotePullPause(outcome.Plan.Pod, outcome.Failed, until)
}

// CheckSaved returns why a saved plan of a pod does not fit any more; nil if it does. It does not change the pod.
func (s *Syncer) CheckSaved(ctx context.Context, desired *podspec.Desired, opts plan.Options, saved *plan.Plan) error {
	ref := model.RefOf(desired.Pod)
	if err := s.digests.Keep(); err != nil {
		return fmt.Errorf("pod %s: %w", ref, err)
	}
	in, _, err := s.observer.Input(ctx, ref, desired, opts)
	if err == nil {
		_, err = makePlan(in, saved)
	}
	return err
}

// PlanDeletion decides what Delete would do. It changes nothing.
func (s *Syncer) PlanDeletion(ctx context.Context, ref model.PodRef, opts plan.Options) (*plan.Plan, error) {
	in, _, err := s.observer.Input(ctx, ref, nil, opts)
	if err != nil {
		return nil, err
	}
	return planfile.Make(in), nil
}

func (s *Syncer) pass(
	ctx context.Context, ref model.PodRef, desired *podspec.Desired, opts executor.Options,
) (outcome *executor.Outcome, err error) {
	ctx, end := cri.StartSpan(ctx, "pass", cri.PodAttributes(ref)...)
	defer func() { end(err) }()
	lock, err := s.locker.Lock(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if desired != nil {
		if err = s.digests.Keep(); err != nil {
			return nil, fmt.Errorf("pod %s: %w", ref, err)
		}
	}
	reserved := map[string]uint32{}
	for try := 0; ; try++ {
		outcome, err = s.attempt(ctx, ref, desired, opts, reserved)
		changed := (*executor.StateChangedError)(nil)
		if !errors.As(err, &changed) || try == maxReplans || opts.Saved != nil {
			s.notifyChanged(ctx, ref, outcome)
			return outcome, err
		}
		changed.Learn(reserved)
	}
}

// guard protects the node's 127.0.0.1 if the plan sets up the network of a pod with hostPorts.
func (s *Syncer) guard(p *plan.Plan, d *podspec.Desired) {
	if s.Guard != nil && p.CreateSandbox && !d.Pod.Spec.HostNetwork && len(podspec.HostPorts(d.Pod)) > 0 {
		s.Guard()
	}
}

// notifyChanged calls Changed after a pass with steps.
func (s *Syncer) notifyChanged(ctx context.Context, ref model.PodRef, outcome *executor.Outcome) {
	if s.Changed != nil && outcome != nil && len(outcome.Plan.Steps) > 0 {
		s.Changed(ctx, ref.UID)
	}
}

// attempt observes, plans and executes once. reserved are the attempts of containers that the runtime reported as in
// use.
func (s *Syncer) attempt(
	ctx context.Context, ref model.PodRef, desired *podspec.Desired, opts executor.Options, reserved map[string]uint32,
) (*executor.Outcome, error) {
	freePorts, err := s.locker.ReservePorts(ctx, desired)
	if err != nil {
		return nil, err
	}
	defer freePorts()
	in, snap, err := s.observer.Input(ctx, ref, desired, opts.Options)
	if err != nil {
		return nil, err
	}
	if err = Superseded(ref, cmp.Or(desired, opts.Only), snap.Checkpoint); err != nil {
		return nil, err
	}
	if !opts.ClusterPods {
		if err = refuseClusterPod(ref, desired, snap.Checkpoint); err != nil {
			return nil, err
		}
	}
	if opts.Precondition != nil {
		if err = opts.Precondition(snap.Checkpoint); err != nil {
			return nil, err
		}
	}
	in.Observed.Reserved = reserved
	freeNode, err := s.reserveNode(ctx, in)
	if err != nil {
		return nil, err
	}
	defer freeNode()
	p, err := makePlan(in, opts.Saved)
	if err != nil {
		return nil, err
	}
	s.guard(p, in.Desired)
	opts.Begun = func() { freePorts(); freeNode() }
	outcome, err := s.executor.Run(ctx, in, p, snap, opts)
	if outcome != nil {
		outcome.Input, outcome.Desired = in, in.Desired
	}
	return outcome, err
}

// reserveNode reads the resources of other pods again if the admission of the pod depends on them. It blocks other
// admissions until the result is recorded.
func (s *Syncer) reserveNode(ctx context.Context, in *plan.Input) (free func(), err error) {
	if !in.NeedsAdmission() {
		return func() {}, nil
	}
	if free, err = s.locker.ReserveNode(ctx, in.Pod); err != nil {
		return nil, err
	}
	if in.Observed.Others, err = s.observer.Others(in.Pod); err != nil {
		free()
	}
	return free, err
}

// makePlan makes a new plan, or repeats the saved one.
func makePlan(in *plan.Input, saved *plan.Plan) (*plan.Plan, error) {
	if saved != nil {
		return planfile.MakeAgain(in, saved)
	}
	return planfile.Make(in), nil
}
