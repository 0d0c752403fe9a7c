package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
)

// Debug starts a debug container in a running pod, whose manifest stays as it is. The
// container bears its own definition, so that every later plan knows it.
func (e *Engine) Debug(ctx context.Context, desired *podspec.Desired, c *v1.EphemeralContainer, opts Options) (outcome *Outcome, err error) {
	ref := model.RefOf(desired.Pod)
	if _, taken := podspec.FindContainer(desired.Pod, c.Name); taken {
		return nil, fmt.Errorf("pod %s has a container %s already; give the debug container another name", ref, c.Name)
	}
	lock, err := e.lock(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	with, err := load.WithEphemeral(desired, c)
	if err != nil {
		return nil, err
	}
	in, s, err := e.input(ctx, ref, with, opts.Options)
	if err != nil {
		return nil, err
	}
	p := plan.MakeDebug(in, c.Name)
	if !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Kind == plan.StartContainer }) {
		return nil, cannotDebug(ref, p)
	}
	x := e.newExecution(in, p, s, opts)
	x.debug = c
	return x.run(ctx)
}

func cannotDebug(ref model.PodRef, p *plan.Plan) error {
	for i := range p.Holds {
		return fmt.Errorf("pod %s: the debug container cannot start: %s", ref, p.Holds[i].Message)
	}
	return fmt.Errorf("pod %s does not run, or has to be started anew first (see podctl plan): a debug container joins a running pod", ref)
}

// markDebug writes the definition of a debug container on it.
func (x *execution) markDebug(config *runtimeapi.ContainerConfig) error {
	if x.debug == nil {
		return nil
	}
	text, err := json.Marshal(x.debug)
	if err != nil {
		return fmt.Errorf("marking the debug container: %w", err)
	}
	config.Annotations[criconfig.AnnotationDebug] = string(text)
	return nil
}

// WithDebug is the manifest together with the debug containers that were added to the
// running pod, for commands that work on one container of it.
func (e *Engine) WithDebug(ctx context.Context, desired *podspec.Desired) (*podspec.Desired, error) {
	ref := model.RefOf(desired.Pod)
	list, err := e.listContainers(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("looking for the containers of pod %s: %w", ref, err)
	}
	notes := make([]map[string]string, 0, len(list))
	for _, c := range list {
		notes = append(notes, c.GetAnnotations())
	}
	return snapshot.WithDebug(desired, notes), nil
}
