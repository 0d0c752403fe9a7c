package podspec

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// Volume is a volume of a pod together with what its claim is bound to.
type Volume struct {
	// Volume is the volume as it is mounted. A claim that is bound to a path of the host is a hostPath. An unbound
	// claim of the API server has no source, because it is not one of podctl's own.
	*v1.Volume
	// Path is the field path of the volume in the manifest.
	Path string
	// Claim is the name of its claim (ClaimName); empty for other volumes.
	Claim string
	// Bound is the path of the host to which the claim is bound; nil if there is none.
	Bound *HostVolume
	// Unbound is set for a claim of the API server that is not bound, is unknown or cannot be used.
	Unbound bool
	// ReadOnly is set if no container may change the content of the claim.
	ReadOnly bool
}

// Volumes returns the volumes of a pod in manifest order.
func Volumes(d *Desired) []Volume {
	all := make([]Volume, len(d.Pod.Spec.Volumes))
	for i := range all {
		all[i] = volumeAt(d, i)
	}
	return all
}

// VolumeNamed returns the volume with this name, or false if the pod has none.
func VolumeNamed(d *Desired, name string) (Volume, bool) {
	for i := range d.Pod.Spec.Volumes {
		if d.Pod.Spec.Volumes[i].Name == name {
			return volumeAt(d, i), true
		}
	}
	return Volume{}, false
}

// MountedVolumes returns the volumes that containers mount, in manifest order. It omits image volumes, which need no
// preparation (kubelet: desired state of the world).
func MountedVolumes(d *Desired) []Volume {
	mounted := mountedNames(d.Pod)
	return slices.DeleteFunc(Volumes(d), func(vol Volume) bool { return !mounted[vol.Name] || vol.Image != nil })
}

// volumeAt resolves the claim of one volume.
func volumeAt(d *Desired, i int) Volume {
	source := &d.Pod.Spec.Volumes[i]
	vol := Volume{Volume: source, Path: fieldpath.Index("spec.volumes", i), Claim: ClaimName(d.Pod, source)}
	if !isClaim(source) {
		return vol
	}
	vol.ReadOnly = source.PersistentVolumeClaim != nil && source.PersistentVolumeClaim.ReadOnly
	vol.Bound = d.Objects.Volumes[vol.Claim]
	switch {
	case vol.Bound != nil:
		path := &v1.HostPathVolumeSource{Path: vol.Bound.Path, Type: &vol.Bound.Type}
		vol.Volume = &v1.Volume{Name: source.Name, VolumeSource: v1.VolumeSource{HostPath: path}}
	case d.FromCluster():
		vol.Unbound, vol.Volume = true, &v1.Volume{Name: source.Name}
	}
	return vol
}

// HostVolume is a PersistentVolume on a path of the host.
type HostVolume struct {
	// Name is the name of the PersistentVolume.
	Name string `json:"name"`
	// Path is an absolute path. Type is its required type, as in a hostPath volume.
	Path string          `json:"path"`
	Type v1.HostPathType `json:"type,omitempty"`
	// Local is set for a local volume of the API server. It belongs to its pods: it gets their fsGroup.
	Local bool `json:"local,omitempty"`
}

// HostVolumeOf returns the path of a PersistentVolume of type hostPath or local, or nil for other types. The kubelet
// mounts a local volume only if the path exists (localVolumeMounter.SetUpAt).
func HostVolumeOf(volume *v1.PersistentVolume) *HostVolume {
	switch source := &volume.Spec.PersistentVolumeSource; {
	case source.HostPath != nil:
		return &HostVolume{Name: volume.Name, Path: source.HostPath.Path, Type: HostPathType(source.HostPath)}
	case source.Local != nil:
		return &HostVolume{Name: volume.Name, Path: source.Local.Path, Type: v1.HostPathDirectory}
	}
	return nil
}

// ClaimName returns the name of the claim of a volume: that in the volume, or of a generic ephemeral volume the claim
// that the cluster creates for the pod (kubelet: ephemeral.VolumeClaimName). It is empty for other volumes.
func ClaimName(pod *v1.Pod, vol *v1.Volume) string {
	switch {
	case vol.PersistentVolumeClaim != nil:
		return vol.PersistentVolumeClaim.ClaimName
	case vol.Ephemeral != nil:
		return pod.Name + "-" + vol.Name
	}
	return ""
}

// ClaimVolumes returns the volumes of a pod with a claim, in manifest order.
func ClaimVolumes(pod *v1.Pod, claim string) (volumes []*v1.Volume) {
	for i := range pod.Spec.Volumes {
		if vol := &pod.Spec.Volumes[i]; isClaim(vol) && ClaimName(pod, vol) == claim {
			volumes = append(volumes, vol)
		}
	}
	return volumes
}

func isClaim(vol *v1.Volume) bool { return vol.PersistentVolumeClaim != nil || vol.Ephemeral != nil }

// FindVolume returns the volume of the manifest with this name, or nil if the pod has none.
func FindVolume(pod *v1.Pod, name string) *v1.Volume {
	for i := range pod.Spec.Volumes {
		if vol := &pod.Spec.Volumes[i]; vol.Name == name {
			return vol
		}
	}
	return nil
}

// UsedVolumes is MountedVolumes with the volumes as the manifest has them.
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

// EmptyDir is the kubelet's plugin name for emptyDir volumes, and for all volumes whose content podctl writes.
const EmptyDir = "empty-dir"

// VolumePlugin returns the kubelet's plugin name for the kind of a volume, which is part of its path. It is empty for a
// volume without a directory below the pod's own.
func VolumePlugin(vol *v1.Volume) string {
	switch {
	case vol.EmptyDir != nil:
		return EmptyDir
	case vol.ConfigMap != nil:
		return "configmap"
	case vol.Secret != nil:
		return "secret"
	case vol.DownwardAPI != nil:
		return "downward-api"
	case vol.Projected != nil:
		return "projected"
	}
	return ""
}

// HasContent reports whether podctl writes the volume's content.
func HasContent(vol *v1.Volume) bool {
	return vol != nil && vol.EmptyDir == nil && VolumePlugin(vol) != ""
}
