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
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// Facts are the values from which the messages of a pod and their checks follow.
type Facts struct {
	// Volumes has the pod with its objects and files.
	Volumes volume.Context
	// States are the volumes before a pass. It is nil once they are prepared.
	States []volume.State
	Node   criconfig.Node
	// Runtime is the name that the runtime reports.
	Runtime string
	// Images are the images of the pod by reference; empty for one that is not present.
	Images map[string]model.Image
}

// Prover checks the sandbox and the containers of one pod.
type Prover struct {
	// ContainerInput has the input that the containers of the pod share.
	criconfig.ContainerInput
	facts Facts
}

// New returns the Prover of a pod. It creates nothing: the paths in its messages are those that a start will create.
// With an error it returns a Prover without these paths.
func New(f Facts) (*Prover, error) {
	pod, d := f.Volumes.Pod, f.Volumes.Desired
	users, err := idMapping(pod, d.Pod)
	paths := criconfig.Paths{EtcHosts: pod.EtcHosts(), Volumes: f.Volumes.Paths(), UserNS: users}
	if err == nil {
		paths.LogDir, err = pod.Logs(d.Pod.Namespace, d.Pod.Name).Dir()
	}
	input := criconfig.ContainerInput{Desired: d, Node: f.Node, Images: f.Images, Paths: paths}
	return &Prover{facts: f, ContainerInput: input}, err
}

// idMapping returns the ID range of a pod with its own user namespace: the allocated one, or a placeholder until then.
func idMapping(files state.Pod, pod *v1.Pod) (*criconfig.IDMapping, error) {
	if !criconfig.OwnUsers(pod) {
		return nil, nil
	}
	ids, given, err := files.IDs().Read()
	if err != nil {
		return nil, err
	}
	if !given {
		ids = state.AnyIDs()
	}
	return &criconfig.IDMapping{HostID: ids.First, Length: ids.Length}, nil
}

func refusal(reason model.Reason, format string, args ...any) error {
	return model.WithReason(reason, fmt.Errorf(format, args...))
}

// Container returns why a container cannot be created or started in a pod with these addresses. Addresses that the pod
// has not got yet may be missing.
func (p *Prover) Container(ref podspec.ContainerRef, attempt uint32, ips []string) error {
	if err := p.checkDemands(); err != nil {
		return err
	}
	config, err := p.config(ref, attempt, ips)
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

// Input returns the values of a container's message, and the paths of its mounts inside volumes by their position. It
// lacks the paths that only the creation of the container makes. Values of environment files that no init container has
// written yet are unwritten. If that is empty, they are missing.
func (p *Prover) Input(
	ref podspec.ContainerRef, attempt uint32, ips []string, unwritten string,
) (in criconfig.ContainerInput, subs map[int]string, err error) {
	in = p.ContainerInput
	in.Container, in.Attempt, in.PodIPs, in.Paths.SubPaths = ref, attempt, ips, map[int]string{}
	if in.Files, err = envFiles(p.facts.Volumes, ref, unwritten); err != nil {
		return in, nil, err
	}
	subs, err = criconfig.SubPaths(in)
	return in, subs, err
}

// config returns the message of a container before its creation. It has no Services, because no check depends on them.
func (p *Prover) config(ref podspec.ContainerRef, attempt uint32, ips []string) (*runtimeapi.ContainerConfig, error) {
	in, subs, err := p.Input(ref, attempt, withPlaceholders(ips, p.Desired.Pod), notYet)
	if err != nil {
		return nil, err
	}
	in.Paths.EtcHosts, in.Paths.TerminationLog, in.Paths.Volumes = standIn, standIn, p.withUnbound(ref)
	for _, i := range slices.Sorted(maps.Keys(subs)) {
		if name := ref.VolumeMounts[i].Name; p.unfinished(name) || in.Paths.Volumes[name] == unfinished+name {
			in.Paths.SubPaths[i] = unfinished + name + "/" + subs[i]
		} else if in.Paths.SubPaths[i], err = volume.CheckSubPath(p.facts.Volumes, ref, i, subs[i]); err != nil {
			return nil, err
		}
	}
	return criconfig.Container(in)
}

// unfinished reports whether the content of a volume is not written yet, so that its present content does not count.
func (p *Prover) unfinished(name string) bool {
	return slices.ContainsFunc(p.facts.States, func(s volume.State) bool { return s.Name == name && s.Unfinished })
}

// withUnbound returns the paths of the volumes, with a placeholder for an unbound claim. The pod is held until the
// claim is bound, so that does not count against the container.
func (p *Prover) withUnbound(ref podspec.ContainerRef) map[string]string {
	paths := maps.Clone(p.Paths.Volumes)
	for i := range ref.VolumeMounts {
		if vol, _ := podspec.VolumeNamed(p.Desired, ref.VolumeMounts[i].Name); vol.Unbound {
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
		vol, known := podspec.VolumeNamed(p.Desired, m.Name)
		if !known {
			continue
		}
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
	return err == nil && p.facts.Runtime == "containerd" && (handler == "" || handler == "runc")
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
