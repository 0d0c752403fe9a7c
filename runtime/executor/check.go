package executor

import (
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// checkContainer checks that a container can be configured and mounted: its references resolve, its image is present,
// its user may run and its volumes contain what it mounts. It changes nothing.
func (x *starter) checkContainer(s *plan.Step) error {
	ref, err := x.container(s)
	if err != nil {
		return err
	}
	if err = x.check(ref, s.Attempt); err != nil {
		err = model.WithReason(model.ReasonOf(err, model.CreateContainerConfigError), err)
		x.checkpoint.noteFailure(ref.Name, err)
	}
	return err
}

func (x *starter) check(ref podspec.ContainerRef, attempt uint32) error {
	sandbox, err := x.sandbox()
	if err != nil {
		return err
	}
	prover, err := x.prover()
	if err != nil {
		return err
	}
	if x.plan.CreateSandbox {
		if err = prover.Sandbox(sandbox.config); err != nil {
			return err
		}
	}
	if err = x.checkTarget(ref.Target); err != nil {
		return err
	}
	return prover.Container(ref, attempt, sandbox.IPs)
}

// checkTarget returns an error if the target container, whose processes another one joins, does not run and this pass
// does not start it.
func (x *starter) checkTarget(container string) error {
	starts := func(s plan.Step) bool { return s.Kind == plan.StartContainer && s.Container == container }
	if container == "" || slices.ContainsFunc(x.plan.Steps, starts) {
		return nil
	}
	_, err := x.target(container)
	return err
}
