package syncpod

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// Debug starts a debug container in a running pod, whose manifest does not change. The container's annotations contain
// its definition, so that every later plan knows it.
func (s *Syncer) Debug(
	ctx context.Context, desired *podspec.Desired, c *v1.EphemeralContainer, opts executor.Options,
) (outcome *executor.Outcome, err error) {
	ref := model.RefOf(desired.Pod)
	if _, taken := podspec.FindContainer(desired.Pod, c.Name); taken {
		return nil, fmt.Errorf("pod %s has a container %s already; give the debug container another name", ref, c.Name)
	}
	lock, err := s.locker.Lock(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	with, err := load.WithEphemeral(desired, c)
	if err != nil {
		return nil, err
	}
	in, snap, err := s.observer.Input(ctx, ref, with, opts.Options)
	if err != nil {
		return nil, err
	}
	p := plan.MakeDebug(in, c.Name)
	if !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Kind == plan.StartContainer }) {
		return nil, cannotDebug(ref, p)
	}
	opts.Debug = c
	return s.executor.Run(ctx, in, p, snap, opts)
}

func cannotDebug(ref model.PodRef, p *plan.Plan) error {
	for i := range p.Holds {
		return fmt.Errorf("pod %s: the debug container cannot start: %s", ref, p.Holds[i].Message)
	}
	return fmt.Errorf("pod %s is not running, or must be restarted first (see podctl plan): "+
		"a debug container joins a running pod", ref)
}
