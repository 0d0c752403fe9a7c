package volume

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// Context is what the volumes of one pod depend on.
type Context struct {
	// Pod says where the pod's files lie.
	Pod state.Pod
	// Desired is the pod with the ConfigMaps and Secrets of its volumes.
	Desired *podspec.Desired
	// Allocatable is what the node has to give to pods: the largest size of a
	// volume in memory, and for downwardAPI the value of a limit that is not set.
	Allocatable v1.ResourceList
}

// fsGroup is the group that the pod's volumes belong to; nil when it names none.
func (c Context) fsGroup() *int64 {
	if sc := c.Desired.Pod.Spec.SecurityContext; sc != nil {
		return sc.FSGroup
	}
	return nil
}

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
// a claim that is bound to none its directory, which outlives the pod, and nothing for an image, which
// the runtime mounts. Nothing is looked up. The error is a *state.NameError, for a name that
// cannot be part of a path.
func (c Context) Path(vol *v1.Volume) (string, error) {
	switch vol = c.Desired.Volume(vol); {
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

// Paths are where the content of the pod's volumes lies, by their names. One whose name cannot be part of a path has none: its
// preparation says why.
func (c Context) Paths() map[string]string {
	paths := map[string]string{}
	for i := range c.Desired.Pod.Spec.Volumes {
		if path, err := c.Path(&c.Desired.Pod.Spec.Volumes[i]); err == nil {
			paths[c.Desired.Pod.Spec.Volumes[i].Name] = path
		}
	}
	return paths
}

// HasContent reports whether podctl writes what the volume holds.
func HasContent(vol *v1.Volume) bool {
	return vol != nil && vol.EmptyDir == nil && pluginOf(vol) != ""
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

// claim is the claim behind a volume.
func (c Context) claim(vol *v1.Volume) state.Claim {
	return state.Claim{Namespace: c.Desired.Pod.Namespace, Name: vol.PersistentVolumeClaim.ClaimName}
}

// mounter makes one volume of the pod ready to be mounted.
type mounter struct {
	Context
	vol *v1.Volume
	// at is the field path of the volume.
	at string
}

// find returns the mounter of the volume of that name.
func (c Context) find(name string) (*mounter, error) {
	vol, at := podspec.FindVolume(c.Desired.Pod, name)
	if vol == nil {
		return nil, fmt.Errorf("pod %s/%s has no volume %q", c.Desired.Pod.Namespace, c.Desired.Pod.Name, name)
	}
	return &mounter{Context: c, vol: c.Desired.Volume(vol), at: at}, nil
}

// path is where the volume's content lies.
func (m *mounter) path() (string, error) { return m.Path(m.vol) }

// marker is the file that is there once the volume is complete.
func (m *mounter) marker() (mark, error) {
	path, err := m.Pod.VolumeMarker(pluginOf(m.vol), m.vol.Name)
	return mark{m.Pod, path}, err
}
