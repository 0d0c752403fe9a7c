package executor

import (
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/volume"
)

// checkContainer proves that a container can be configured: its references
// resolve, its image is there and its user may run. Nothing is changed.
func (x *starter) checkContainer(s *plan.Step) error {
	ref, err := x.inputs.container(s)
	if err != nil {
		return err
	}
	if err = x.check(ref, s.Attempt); err != nil {
		x.checkpoint.noteFailure(ref.Name, withReason(model.CreateContainerConfigError, err))
	}
	return withReason(model.CreateContainerConfigError, err)
}

func (x *starter) check(ref podspec.ContainerRef, attempt uint32) error {
	sandbox, err := x.inputs.sandbox()
	if err != nil {
		return err
	}
	config, err := x.inputs.builder(proof{x.inputs}).Container(ref, attempt, knownOr(sandbox.IPs, x.desired.Pod))
	if err != nil {
		return err
	}
	return checkStartable(config)
}

// checkStartable finds what a runtime would refuse, and only after the container that is
// replaced has been stopped.
func checkStartable(config *runtimeapi.ContainerConfig) error {
	if dir := config.GetWorkingDir(); dir != "" && !filepath.IsAbs(dir) {
		return fmt.Errorf("workingDir %q is not an absolute path", dir)
	}
	for _, m := range config.GetMounts() {
		if err := checkPropagation(m); err != nil {
			return fmt.Errorf("mount at %s: %w", m.GetContainerPath(), err)
		}
	}
	profile := config.GetLinux().GetSecurityContext().GetSeccomp()
	if profile.GetProfileType() != runtimeapi.SecurityProfile_Localhost {
		return nil
	}
	if _, err := os.Stat(profile.GetLocalhostRef()); err != nil {
		return fmt.Errorf("securityContext.seccompProfile: %w", err)
	}
	return nil
}

// checkPropagation looks at a mount whose path is known: a part of a volume is bound when
// its container starts, and shared then.
func checkPropagation(m *runtimeapi.Mount) error {
	mode, asked := map[runtimeapi.MountPropagation]v1.MountPropagationMode{
		runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER: v1.MountPropagationHostToContainer,
		runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:     v1.MountPropagationBidirectional,
	}[m.GetPropagation()]
	if !asked || !filepath.IsAbs(m.GetHostPath()) {
		return nil
	}
	return volume.CheckPropagation(m.GetHostPath(), mode)
}

// knownOr stands in for addresses that the sandbox will get: a proof must not
// depend on them.
func knownOr(ips []string, pod *v1.Pod) []string {
	if len(ips) > 0 || pod.Spec.HostNetwork {
		return ips
	}
	return []string{"192.0.2.1"}
}
