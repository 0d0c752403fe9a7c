package proof

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/volume"
)

// Prover checks the sandbox and the containers of one pod.
type Prover struct {
	// ContainerInput has the input that the containers of the pod share.
	criconfig.ContainerInput
	Volumes volume.Context
	// Runtime is the name that the runtime reports.
	Runtime string
	// Unfinished are the volumes whose content is not written yet, so that their present content does not count.
	Unfinished map[string]bool
}

func refusal(reason model.Reason, format string, args ...any) error {
	return model.WithReason(reason, fmt.Errorf(format, args...))
}

// Container returns why a container cannot be created or started in a pod with these addresses. Addresses that the pod
// has not got yet may be missing.
func (p *Prover) Container(ref podspec.ContainerRef, attempt uint32, ips []string) error {
	if err := p.checkDemands(ref); err != nil {
		return err
	}
	in, err := p.input(ref, attempt, ips)
	if err != nil {
		return err
	}
	config, err := criconfig.Container(in)
	if err != nil {
		return err
	}
	if err = p.checkAppArmor(ref, config); err != nil {
		return err
	}
	if err = checkSeccomp(config); err != nil {
		return err
	}
	if err = checkPropagation(ref, config); err != nil {
		return err
	}
	if err = p.checkHostPaths(ref); err != nil {
		return err
	}
	return p.checkPlaces(ref, config)
}

// standIn replaces files that are created with the container.
const standIn = os.DevNull

// notYet replaces the values of files that an init container will write.
const notYet = "?"

// unfinished is the prefix for a part of a volume whose content is not written yet. It is no path on disk.
const unfinished = "unfinished:"

// input returns the input for the message of a container before its creation. It omits Services, because no check
// depends on them.
func (p *Prover) input(
	ref podspec.ContainerRef, attempt uint32, ips []string,
) (in criconfig.ContainerInput, err error) {
	in = p.ContainerInput
	in.Container, in.Attempt, in.PodIPs = ref, attempt, withPlaceholders(ips, p.Desired.Pod)
	in.Paths.EtcHosts, in.Paths.TerminationLog, in.Paths.SubPaths = standIn, standIn, map[int]string{}
	if in.Files, err = EnvFiles(p.Volumes, ref, notYet); err != nil {
		return in, err
	}
	in.Paths.Volumes = p.withUnbound(ref)
	subs, err := criconfig.SubPaths(in)
	for _, i := range slices.Sorted(maps.Keys(subs)) {
		if name := ref.VolumeMounts[i].Name; p.Unfinished[name] || in.Paths.Volumes[name] == unfinished+name {
			in.Paths.SubPaths[i] = unfinished + name + "/" + subs[i]
		} else if in.Paths.SubPaths[i], err = volume.CheckSubPath(p.Volumes, ref, i, subs[i]); err != nil {
			return in, err
		}
	}
	return in, err
}

// withUnbound returns the paths of the volumes, with a placeholder for an unbound claim. The pod is held until the claim
// is bound, so that does not count against the container.
func (p *Prover) withUnbound(ref podspec.ContainerRef) map[string]string {
	paths := maps.Clone(p.Paths.Volumes)
	for i := range ref.VolumeMounts {
		if vol, _ := podspec.FindVolume(p.Desired.Pod, ref.VolumeMounts[i].Name); podspec.IsUnbound(p.Desired, vol) {
			paths[vol.Name] = unfinished + vol.Name
		}
	}
	return paths
}

// checkHostPaths finds paths of the host that the runtime can neither mount nor create. It skips a part of a path,
// which podctl creates and which is checked as a part.
func (p *Prover) checkHostPaths(ref podspec.ContainerRef) error {
	for i := range ref.VolumeMounts {
		m := &ref.VolumeMounts[i]
		if m.SubPath != "" || m.SubPathExpr != "" {
			continue
		}
		vol, _ := podspec.FindVolume(p.Desired.Pod, m.Name)
		if err := volume.RuntimeFault(vol); err != nil {
			// A kubelet finds this out when the runtime creates the container.
			return refusal(model.CreateContainerError, "%s.volumeMounts[%d]: hostPath: %w", ref.Path, i, err)
		}
	}
	return nil
}

// withPlaceholders replaces missing addresses of the future sandbox, because a check must not depend on them.
func withPlaceholders(ips []string, pod *v1.Pod) []string {
	if len(ips) > 0 || pod.Spec.HostNetwork {
		return ips
	}
	return []string{"192.0.2.1"}
}

// usesRunc reports whether runc runs the pod. runc refuses some mounts and sysctls. The limits of other runtimes are
// unknown.
func (p *Prover) usesRunc() bool {
	handler, err := p.Node.HandlerOf(p.Desired)
	return err == nil && p.Runtime == "containerd" && (handler == "" || handler == "runc")
}

func checkSeccomp(config *runtimeapi.ContainerConfig) error {
	profile := config.GetLinux().GetSecurityContext().GetSeccomp()
	if profile.GetProfileType() != runtimeapi.SecurityProfile_Localhost {
		return nil
	}
	file, err := input.Open(profile.GetLocalhostRef())
	if err != nil {
		// A kubelet finds this out when the runtime creates the container. The text is runc's.
		return refusal(model.CreateContainerError, "securityContext.seccompProfile: %w",
			model.KubeletErrorf("cannot load seccomp profile %q: %w", profile.GetLocalhostRef(), err))
	}
	return file.Close()
}

// checkPropagation returns an error if mounts cannot propagate as a volume mount requires.
func checkPropagation(ref podspec.ContainerRef, config *runtimeapi.ContainerConfig) error {
	for i := range ref.VolumeMounts {
		m, path := &ref.VolumeMounts[i], config.GetMounts()[i].GetHostPath()
		if !needsPropagation(m, path) {
			continue
		}
		if err := volume.CheckPropagation(path, *m.MountPropagation); err != nil {
			return fmt.Errorf("%s.volumeMounts[%d]: mount at %s: %w", ref.Path, i, m.MountPath, err)
		}
	}
	return nil
}

// needsPropagation reports whether mounts must propagate between a path of the machine and a container. A part of a
// volume is bound when its container starts, and is shared then.
func needsPropagation(m *v1.VolumeMount, path string) bool {
	whole := m.SubPath == "" && m.SubPathExpr == ""
	return whole && m.MountPropagation != nil && *m.MountPropagation != v1.MountPropagationNone && filepath.IsAbs(path)
}
