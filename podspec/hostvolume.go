package podspec

import v1 "k8s.io/api/core/v1"

// HostVolume is a PersistentVolume on a path of the host.
type HostVolume struct {
	// Name is the name of the PersistentVolume.
	Name string `json:"name"`
	// Path is an absolute path. Type is its required type, as in a hostPath volume.
	Path string          `json:"path"`
	Type v1.HostPathType `json:"type,omitempty"`
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

// Volume returns the volume as it is mounted: a claim bound to a path of the host becomes a hostPath.
func (d *Desired) Volume(vol *v1.Volume) *v1.Volume {
	if vol == nil || vol.PersistentVolumeClaim == nil {
		return vol
	}
	bound := d.Objects.Volumes[vol.PersistentVolumeClaim.ClaimName]
	if bound == nil {
		return vol
	}
	path := &v1.HostPathVolumeSource{Path: bound.Path, Type: &bound.Type}
	return &v1.Volume{Name: vol.Name, VolumeSource: v1.VolumeSource{HostPath: path}}
}
