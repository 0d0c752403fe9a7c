package volume

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/state"
)

// pluginOf is the kubelet's name of a volume's kind, which is part of its paths;
// empty for a volume that has no directory among the pod's own.
func pluginOf(vol *v1.Volume) string {
	switch {
	case vol.EmptyDir != nil:
		return state.EmptyDir
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

// Path is where a volume's content lies: for a hostPath the host's own path, for
// a claim its directory, which outlives the pod, and nothing for an image, which
// the runtime mounts. Nothing is looked up. The error is a *state.NameError, for a name that
// cannot be part of a path.
func (c Context) Path(vol *v1.Volume) (string, error) {
	switch {
	case vol.HostPath != nil:
		return vol.HostPath.Path, nil
	case vol.PersistentVolumeClaim != nil:
		return c.Pod.Claims().Dir(c.claim(vol))
	}
	if plugin := pluginOf(vol); plugin != "" {
		return c.Pod.VolumeDir(plugin, vol.Name)
	}
	return "", nil
}

// hasContent reports whether podctl writes what the volume holds.
func hasContent(vol *v1.Volume) bool {
	return vol.EmptyDir == nil && pluginOf(vol) != ""
}

// medium is on what a volume lies. Everything that can hold a secret lies in
// memory and never reaches a disk (kubelet: wrappedVolumeSpec).
func medium(vol *v1.Volume) v1.StorageMedium {
	switch {
	case vol.EmptyDir != nil:
		return vol.EmptyDir.Medium
	case vol.ConfigMap != nil:
		return v1.StorageMediumDefault
	}
	return v1.StorageMediumMemory
}
