package runtime

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// sandboxPaths are the paths a sandbox's configuration names.
func (e *Engine) sandboxPaths(d *podspec.Desired) (criconfig.Paths, error) {
	users, err := e.userNamespace(d.Pod)
	if err != nil {
		return criconfig.Paths{}, err
	}
	logs, err := e.layout.Pod(d.Pod.UID).Logs(d.Pod.Namespace, d.Pod.Name).Dir()
	return criconfig.Paths{LogDir: logs, UserNS: users}, err
}

// userNamespace is the range of ids of a pod with users of its own: the one it
// has been given, or one that stands for it until it is given.
func (e *Engine) userNamespace(pod *v1.Pod) (*criconfig.IDMapping, error) {
	if !criconfig.OwnUsers(pod) {
		return nil, nil
	}
	ids, given, err := e.layout.Pod(pod.UID).IDs().Read()
	if err != nil {
		return nil, err
	}
	if !given {
		ids = state.AnyIDs()
	}
	return idMapping(ids), nil
}

func idMapping(ids state.IDRange) *criconfig.IDMapping {
	return &criconfig.IDMapping{HostID: ids.First, Length: ids.Length}
}

// containerPaths are the paths a container's configuration names. For a proof
// they are only computed; for a start the hosts file is written, a termination
// log is created and subPaths are bound.
func (x *execution) containerPaths(in *criconfig.ContainerInput, mode mountMode) (criconfig.Paths, error) {
	pod := x.e.layout.Pod(x.desired.Pod.UID)
	users, err := x.e.userNamespace(x.desired.Pod)
	if err != nil {
		return criconfig.Paths{}, err
	}
	p := criconfig.Paths{EtcHosts: pod.EtcHosts(), Volumes: map[string]string{}, SubPaths: map[int]string{}, UserNS: users}
	for i := range x.desired.Pod.Spec.Volumes {
		vol := &x.desired.Pod.Spec.Volumes[i]
		if p.Volumes[vol.Name], err = x.volumePath(vol); err != nil {
			return p, err
		}
	}
	if err = x.subPaths(in, mode, p.SubPaths); err != nil {
		return p, err
	}
	if mode == mountsForProof {
		return p, nil
	}
	if err = x.writeHosts(in.PodIPs); err != nil {
		return p, err
	}
	if in.Container.TerminationMessagePath == "" {
		return p, nil
	}
	if err = x.removeUnusedLastWords(in.Container.Name); err != nil {
		return p, err
	}
	log, err := pod.TerminationLogs(in.Container.Name).New()
	if err != nil {
		return p, err
	}
	p.TerminationLog = log
	return p, nil
}

// volumePath is where a volume's content lies.
func (x *execution) volumePath(vol *v1.Volume) (string, error) {
	path, err := x.e.volumeContext(x.desired).Path(vol)
	if err != nil {
		return "", fmt.Errorf("volume %q: %w", vol.Name, err)
	}
	return path, nil
}

func (x *execution) writeHosts(ips []string) error {
	hosts, err := criconfig.HostsFile(x.desired.Pod, x.e.node(), ips)
	if err != nil {
		return err
	}
	return volume.WriteEtcHosts(x.e.layout.Pod(x.desired.Pod.UID), hosts)
}

// subPaths resolves the mounts that take a part of a volume.
func (x *execution) subPaths(in *criconfig.ContainerInput, mode mountMode, paths map[int]string) error {
	ref := in.Container
	for i := range ref.VolumeMounts {
		m := &ref.VolumeMounts[i]
		if (m.SubPath == "" && m.SubPathExpr == "") || x.isImageVolume(m.Name) {
			continue
		}
		sub, err := criconfig.SubPath(*in, i)
		if err != nil {
			return err
		}
		if mode == mountsForProof {
			paths[i] = sub
			continue
		}
		if paths[i], err = volume.PrepareSubPath(x.e.volumeContext(x.desired), ref, i, sub); err != nil {
			return fmt.Errorf("%s.volumeMounts[%d]: %w", ref.Path, i, err)
		}
	}
	return nil
}

func (x *execution) isImageVolume(name string) bool {
	vol, _ := podspec.FindVolume(x.desired.Pod, name)
	return vol != nil && vol.Image != nil
}
