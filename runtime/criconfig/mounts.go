package criconfig

import (
	"fmt"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/expand"
	"github.com/podctl/podctl/runtime/model"
)

// etcHosts is where the pod's hosts file is mounted, unless the container mounts something else there.
const etcHosts = "/etc/hosts"

// mounts lists the container's mounts: its volumes in order, the hosts file and the termination log (kubelet:
// makeMounts).
func mounts(in *ContainerInput) ([]*runtimeapi.Mount, error) {
	var list []*runtimeapi.Mount
	hosts := len(in.PodIPs) > 0 || in.Desired.Pod.Spec.HostNetwork
	for i := range in.Container.VolumeMounts {
		m := &in.Container.VolumeMounts[i]
		hosts = hosts && m.MountPath != etcHosts
		mount, err := volumeMount(in, i, m)
		if err != nil {
			return nil, fmt.Errorf("%s.volumeMounts[%d]: %w", in.Container.Path, i, err)
		}
		list = append(list, mount)
	}
	if hosts && in.Paths.EtcHosts != "" {
		list = append(list, &runtimeapi.Mount{
			ContainerPath: etcHosts, HostPath: in.Paths.EtcHosts, SelinuxRelabel: in.Node.SELinux,
		})
	}
	if p := in.Container.TerminationMessagePath; p != "" && in.Paths.TerminationLog != "" {
		list = append(list, &runtimeapi.Mount{
			ContainerPath: p, HostPath: in.Paths.TerminationLog, SelinuxRelabel: in.Node.SELinux,
		})
	}
	for _, m := range list {
		m.UidMappings, m.GidMappings = in.Paths.UserNS.messages(), in.Paths.UserNS.messages()
	}
	return list, nil
}

func volumeMount(in *ContainerInput, index int, m *v1.VolumeMount) (*runtimeapi.Mount, error) {
	vol, ok := podspec.VolumeNamed(in.Desired, m.Name)
	if !ok {
		return nil, fmt.Errorf("the pod has no volume %q", m.Name)
	}
	mount := &runtimeapi.Mount{
		ContainerPath: absolute(m.MountPath),
		Readonly:      m.ReadOnly || readOnlyByNature(vol),
		Propagation:   propagation(m.MountPropagation),
	}
	var err error
	if mount.RecursiveReadOnly, err = recursiveReadOnly(in, m); err != nil {
		return nil, err
	}
	if vol.Image != nil {
		return mount, mountImage(in, m, vol, mount)
	}
	mount.SelinuxRelabel = in.Node.SELinux && (vol.HostPath == nil || vol.Bound != nil && vol.Bound.Local)
	mount.HostPath = in.Paths.Volumes[vol.Name]
	if m.SubPath != "" || m.SubPathExpr != "" {
		mount.HostPath = in.Paths.SubPaths[index]
	}
	if mount.GetHostPath() == "" {
		return nil, fmt.Errorf("volume %q is not prepared", m.Name)
	}
	return mount, nil
}

// mountImage adds an image, or a part of it, to a mount. It requires the ID, because the runtime would otherwise get an
// image without a name.
func mountImage(in *ContainerInput, m *v1.VolumeMount, vol podspec.Volume, mount *runtimeapi.Mount) (err error) {
	id := in.Images[vol.Image.Reference].ID
	if id == "" {
		return fmt.Errorf("image %s of volume %q is not present; pull it, or apply with --pull missing",
			vol.Image.Reference, vol.Name)
	}
	mount.Image = &runtimeapi.ImageSpec{
		Image:              id,
		UserSpecifiedImage: vol.Image.Reference,
		Annotations:        in.Desired.Pod.Annotations,
	}
	mount.ImageSubPath, err = subPath(in, m)
	return err
}

func absolute(p string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	return "/" + p
}

// readOnlyByNature reports whether a container must not change the volume's content.
func readOnlyByNature(vol podspec.Volume) bool {
	return vol.ReadOnly || vol.ConfigMap != nil || vol.Secret != nil ||
		vol.Projected != nil || vol.DownwardAPI != nil || vol.Image != nil
}

func propagation(mode *v1.MountPropagationMode) runtimeapi.MountPropagation {
	switch ptr.Deref(mode, v1.MountPropagationNone) {
	case v1.MountPropagationHostToContainer:
		return runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
	case v1.MountPropagationBidirectional:
		return runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
	case v1.MountPropagationNone:
	}
	return runtimeapi.MountPropagation_PROPAGATION_PRIVATE
}

// recursiveReadOnly resolves the setting for a mount whose submounts are read-only too. Not every runtime supports it.
func recursiveReadOnly(in *ContainerInput, m *v1.VolumeMount) (bool, error) {
	if m.RecursiveReadOnly == nil {
		return false, nil
	}
	handler, unknown := in.Node.HandlerOf(in.Desired)
	able := unknown == nil && in.Node.Handlers[handler].RecursiveReadOnlyMounts
	switch *m.RecursiveReadOnly {
	case v1.RecursiveReadOnlyIfPossible:
		return able, nil
	case v1.RecursiveReadOnlyEnabled:
		if !able {
			return false, &model.KubeletError{
				Err: fmt.Errorf("recursiveReadOnly: %s does not support recursive read-only mounts "+
					"(containerd 2.0 and newer do, with crun or runc 1.1)", nameOf(handler)),
				Text: fmt.Sprintf("failed to resolve recursive read-only mode: "+
					"volume %q requested recursive read-only mode, but it is not supported by the runtime", m.Name),
			}
		}
		return true, nil
	case v1.RecursiveReadOnlyDisabled:
	}
	return false, nil
}

// SubPath returns the path of a mount inside its volume, with subPathExpr expanded from the container's environment;
// empty if the whole volume is mounted. The text of the path never leads out of the volume.
func SubPath(in ContainerInput, index int) (string, error) {
	sub, err := subPath(&in, &in.Container.VolumeMounts[index])
	if err != nil {
		return "", fmt.Errorf("%s.volumeMounts[%d]: %w", in.Container.Path, index, err)
	}
	return sub, nil
}

// SubPaths returns the paths of a container's mounts inside volumes, by position. It omits paths in images, which the
// runtime resolves.
func SubPaths(in ContainerInput) (map[int]string, error) {
	subs := map[int]string{}
	for i := range in.Container.VolumeMounts {
		m := &in.Container.VolumeMounts[i]
		vol, known := podspec.VolumeNamed(in.Desired, m.Name)
		if m.SubPath == "" && m.SubPathExpr == "" || known && vol.Image != nil {
			continue
		}
		var err error
		if subs[i], err = SubPath(in, i); err != nil {
			return nil, err
		}
	}
	return subs, nil
}

func subPath(in *ContainerInput, m *v1.VolumeMount) (string, error) {
	sub := m.SubPath
	if m.SubPathExpr != "" {
		env, err := environment(in)
		if err != nil {
			return "", err
		}
		if sub, err = expandSubPath(m.SubPathExpr, env); err != nil {
			return "", fmt.Errorf("subPathExpr: %w", err)
		}
	}
	if path.IsAbs(sub) {
		return "", model.KubeletErrorf("error SubPath `%s` must not be an absolute path", sub)
	}
	for part := range strings.SplitSeq(sub, "/") {
		if part == ".." {
			return "", model.KubeletErrorf("unable to provision SubPath `%s`: must not contain '..'", sub)
		}
	}
	return sub, nil
}

// expandSubPath expands $(VAR). A missing or empty variable is an error, because a wrong directory would be mounted.
func expandSubPath(text string, env *expand.Environment) (string, error) {
	out, missing, err := env.SubPath(text)
	if err == nil && len(missing) > 0 {
		err = model.KubeletErrorf("missing value for %s", strings.Join(missing, ", "))
	}
	return out, err
}
