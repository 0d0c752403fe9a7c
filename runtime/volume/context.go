package volume

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// Context holds the inputs for the volumes of one pod.
type Context struct {
	// Pod locates the pod's files.
	Pod state.Pod
	// Desired is the pod with the ConfigMaps and Secrets of its volumes.
	Desired *podspec.Desired
	// Allocatable lists the node's resources for pods. It limits the size of volumes in memory, and it is the
	// downwardAPI value of an unset limit.
	Allocatable v1.ResourceList
}

// fsGroup returns the group of the pod's volumes, or nil if the pod sets none.
func (c Context) fsGroup() *int64 {
	if sc := c.Desired.Pod.Spec.SecurityContext; sc != nil {
		return sc.FSGroup
	}
	return nil
}

// PluginName returns the kubelet's full name for the kind of a volume, for example kubernetes.io/empty-dir.
func PluginName(vol *v1.Volume) string {
	switch {
	case vol.HostPath != nil:
		return "kubernetes.io/host-path"
	case vol.PersistentVolumeClaim != nil, vol.Ephemeral != nil:
		return "kubernetes.io/local-volume"
	}
	return "kubernetes.io/" + podspec.VolumePlugin(vol)
}

// Path returns the directory of the volume's content. For a hostPath that is the host's path; for a claim, its
// directory, which outlives the pod. For an image it is empty, because the runtime mounts images. Path does not access
// the disk. It returns a *state.NameError if a name cannot be part of a path.
func (c Context) Path(vol podspec.Volume) (string, error) {
	switch {
	case vol.HostPath != nil:
		return vol.HostPath.Path, nil
	case vol.PersistentVolumeClaim != nil:
		return c.Pod.Claims().Dir(c.claim(vol))
	}
	if plugin := podspec.VolumePlugin(vol.Volume); plugin != "" {
		return c.Pod.VolumeDir(plugin, vol.Name)
	}
	return "", nil
}

// Paths returns the content paths of the pod's volumes by name. It omits volumes with an invalid name; their
// preparation reports the reason.
func (c Context) Paths() map[string]string {
	paths := map[string]string{}
	for _, vol := range podspec.Volumes(c.Desired) {
		if path, err := c.Path(vol); err == nil {
			paths[vol.Name] = path
		}
	}
	return paths
}

// medium returns the storage medium of a volume. A volume that can hold a secret lies in memory and never reaches a
// disk (kubelet: wrappedVolumeSpec).
func medium(vol *v1.Volume) v1.StorageMedium {
	switch {
	case vol.EmptyDir != nil:
		return vol.EmptyDir.Medium
	case vol.ConfigMap != nil:
		return v1.StorageMediumDefault
	}
	return v1.StorageMediumMemory
}

// claim returns the claim behind a volume.
func (c Context) claim(vol podspec.Volume) state.Claim {
	return state.Claim{Namespace: c.Desired.Pod.Namespace, Name: vol.Claim}
}

// mounter prepares one volume of the pod for mounting.
type mounter struct {
	Context
	vol podspec.Volume
}

// find returns the mounter of the volume with this name.
func (c Context) find(name string) (*mounter, error) {
	vol, ok := podspec.VolumeNamed(c.Desired, name)
	if !ok {
		return nil, fmt.Errorf("pod %s/%s has no volume %q", c.Desired.Pod.Namespace, c.Desired.Pod.Name, name)
	}
	return &mounter{c, vol}, nil
}

// isLocal reports whether the volume is a local volume of the API server.
func (m *mounter) isLocal() bool { return m.vol.Bound != nil && m.vol.Bound.Local }

func (m *mounter) path() (string, error) { return m.Path(m.vol) }

// marker returns the file that marks the volume as complete.
func (m *mounter) marker() (mark, error) {
	path, err := m.Pod.VolumeMarker(podspec.VolumePlugin(m.vol.Volume), m.vol.Name)
	return mark{m.Pod, path}, err
}
