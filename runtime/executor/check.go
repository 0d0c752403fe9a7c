package executor

import (
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/proof"
)

// checkContainer proves that a container can be configured and mounted: its references
// resolve, its image is there, its user may run and its volumes have what it mounts. Nothing is
// changed.
func (x *starter) checkContainer(s *plan.Step) error {
	ref, err := x.inputs.container(s)
	if err != nil {
		return err
	}
	if err = x.check(ref, s.Attempt); err != nil {
		err = withReason(proof.ReasonOf(err, model.CreateContainerConfigError), err)
		x.checkpoint.noteFailure(ref.Name, err)
	}
	return err
}

func (x *starter) check(ref podspec.ContainerRef, attempt uint32) error {
	sandbox, err := x.inputs.sandbox()
	if err != nil {
		return err
	}
	prover := &proof.Prover{Builder: *x.inputs.builder(x.inputs.proven()), Runtime: x.plan.Runtime.Name}
	if x.plan.CreateSandbox {
		if err := prover.Sandbox(sandbox.config); err != nil {
			return err
		}
	}
	return prover.Container(ref, attempt, sandbox.IPs)
}

// proven is the criconfig.Source of containers that are only proven: it changes nothing, and
// does without what earlier steps of the pass will produce.
func (x *inputs) proven() proofSource { return proofSource{Disk: x.disk(), inputs: x} }

type proofSource struct {
	proof.Disk
	inputs *inputs
}

// Image is what is known now of an image.
func (x proofSource) Image(reference string) (string, criconfig.ImageUser, error) {
	return x.inputs.Image(reference)
}

// VolumeImage is the id of an image that is mounted as a volume.
func (x proofSource) VolumeImage(reference string) string { return x.inputs.VolumeImage(reference) }

// Target need not run yet if this pass will start it.
func (x proofSource) Target(container string) (string, error) {
	if id := x.inputs.outputs.startedID(container); id != "" {
		return id, nil
	}
	starts := slices.ContainsFunc(x.inputs.plan.Steps, func(s plan.Step) bool {
		return s.Kind == plan.StartContainer && s.Container == container
	})
	if starts {
		return "", nil
	}
	return x.inputs.Target(container)
}
