package podspec

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// ContainerType is the list of a container in the pod, and how the container behaves.
type ContainerType string

// Types of containers in a pod.
const (
	// Init runs to completion before the next init container starts.
	Init ContainerType = "init"
	// Sidecar is an init container with restartPolicy Always. It starts in the order of the init containers and then
	// keeps running.
	Sidecar ContainerType = "sidecar"
	// Regular is an entry of spec.containers.
	Regular ContainerType = "regular"
	// Ephemeral is a debug container: started once, never restarted.
	Ephemeral ContainerType = "ephemeral"
)

// ContainerRef is a container of a pod and its place in the manifest.
type ContainerRef struct {
	*v1.Container
	Type ContainerType
	// Index is the position in the container's list. Init containers and sidecars share one list.
	Index int
	// Path is the field path, for example spec.initContainers[1].
	Path string
	// Target names the container whose process namespace an ephemeral container joins. It is empty for other
	// containers.
	Target string
}

// InitContainers returns init containers and sidecars in manifest order.
func InitContainers(pod *v1.Pod) []ContainerRef {
	refs := make([]ContainerRef, 0, len(pod.Spec.InitContainers))
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		path := fieldpath.Index("spec.initContainers", i)
		refs = append(refs, ContainerRef{Container: c, Type: initType(c), Index: i, Path: path})
	}
	return refs
}

// RegularContainers returns spec.containers in order.
func RegularContainers(pod *v1.Pod) []ContainerRef {
	refs := make([]ContainerRef, 0, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		c, path := &pod.Spec.Containers[i], fieldpath.Index("spec.containers", i)
		refs = append(refs, ContainerRef{Container: c, Type: Regular, Index: i, Path: path})
	}
	return refs
}

// EphemeralContainers returns spec.ephemeralContainers in order.
func EphemeralContainers(pod *v1.Pod) []ContainerRef {
	refs := make([]ContainerRef, 0, len(pod.Spec.EphemeralContainers))
	for i := range pod.Spec.EphemeralContainers {
		e := &pod.Spec.EphemeralContainers[i]
		refs = append(refs, ContainerRef{
			Container: (*v1.Container)(&e.EphemeralContainerCommon),
			Type:      Ephemeral,
			Index:     i,
			Path:      fieldpath.Index("spec.ephemeralContainers", i),
			Target:    e.TargetContainerName,
		})
	}
	return refs
}

// Containers returns every container of the pod: init containers and sidecars, then regular ones, then ephemeral ones.
func Containers(pod *v1.Pod) []ContainerRef {
	return append(append(InitContainers(pod), RegularContainers(pod)...), EphemeralContainers(pod)...)
}

// FindContainer returns the container with this name, or false. Names are unique over all lists of a pod.
func FindContainer(pod *v1.Pod, name string) (ContainerRef, bool) {
	for _, ref := range Containers(pod) {
		if ref.Name == name {
			return ref, true
		}
	}
	return ContainerRef{}, false
}

func initType(c *v1.Container) ContainerType {
	if ptr.Deref(c.RestartPolicy, "") == v1.ContainerRestartPolicyAlways {
		return Sidecar
	}
	return Init
}

// ImageNames returns the images of the pod's containers and volumes without duplicates.
func ImageNames(pod *v1.Pod) []string {
	var names []string
	for _, ref := range Containers(pod) {
		names = append(names, ref.Image)
	}
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].Image; source != nil {
			names = append(names, source.Reference)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
