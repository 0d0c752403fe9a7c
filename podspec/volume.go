package podspec

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// FindVolume returns the volume with this name and its field path, or nil if the pod has none.
func FindVolume(pod *v1.Pod, name string) (vol *v1.Volume, path string) {
	for i := range pod.Spec.Volumes {
		if vol = &pod.Spec.Volumes[i]; vol.Name == name {
			return vol, fieldpath.Index("spec.volumes", i)
		}
	}
	return nil, ""
}

// UsedVolumes returns the volumes that containers mount, in manifest order. It omits image volumes, which need no
// preparation (kubelet: desired state of the world).
func UsedVolumes(pod *v1.Pod) []*v1.Volume {
	mounted := mountedNames(pod)
	var used []*v1.Volume
	for i := range pod.Spec.Volumes {
		if vol := &pod.Spec.Volumes[i]; mounted[vol.Name] && vol.Image == nil {
			used = append(used, vol)
		}
	}
	return used
}

// mountedNames returns the names of the volumes that containers mount.
func mountedNames(pod *v1.Pod) map[string]bool {
	names := map[string]bool{}
	for _, ref := range Containers(pod) {
		for i := range ref.VolumeMounts {
			names[ref.VolumeMounts[i].Name] = true
		}
	}
	return names
}

// HostPathType returns the type of a hostPath. It is unset if the volume has no type or source is nil.
func HostPathType(source *v1.HostPathVolumeSource) v1.HostPathType {
	if source == nil {
		return v1.HostPathUnset
	}
	return ptr.Deref(source.Type, v1.HostPathUnset)
}
