package podspec

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// ContainerType says in which list of the pod a container stands and how it
// behaves there.
type ContainerType string

// The four types of container a pod can have.
const (
	// Init runs to completion before the next one starts.
	Init ContainerType = "init"
	// Sidecar is an init container whose own restartPolicy is Always: it is
	// started in the order of the init containers and then keeps running.
	Sidecar ContainerType = "sidecar"
	// Regular is an entry of spec.containers.
	Regular ContainerType = "regular"
	// Ephemeral is a debug container: started once, never restarted.
	Ephemeral ContainerType = "ephemeral"
)

// ContainerRef is one container of a pod and its place in the manifest.
type ContainerRef struct {
	*v1.Container
	Type ContainerType
	// Index is the position in the container's own list (init containers and
	// sidecars share one).
	Index int
	// Path is the field path, for example spec.initContainers[1].
	Path string
	// Target names the container whose process namespace an ephemeral container
	// joins; empty for all others.
	Target string
}

// InitContainers lists plain init containers and sidecars, in the order of the
// manifest.
func InitContainers(pod *v1.Pod) []ContainerRef {
	refs := make([]ContainerRef, 0, len(pod.Spec.InitContainers))
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		refs = append(refs, ContainerRef{Container: c, Type: initType(c), Index: i, Path: fieldpath.Index("spec.initContainers", i)})
	}
	return refs
}

// RegularContainers lists spec.containers in order.
func RegularContainers(pod *v1.Pod) []ContainerRef {
	refs := make([]ContainerRef, 0, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		refs = append(refs, ContainerRef{Container: &pod.Spec.Containers[i], Type: Regular, Index: i, Path: fieldpath.Index("spec.containers", i)})
	}
	return refs
}

// EphemeralContainers lists spec.ephemeralContainers in order.
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

// Containers lists every container of the pod: init containers and sidecars,
// then regular ones, then ephemeral ones.
func Containers(pod *v1.Pod) []ContainerRef {
	return append(append(InitContainers(pod), RegularContainers(pod)...), EphemeralContainers(pod)...)
}

// FindContainer returns the container of that name, or false. Names are unique
// over all lists of a pod.
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

// ImageNames are the images that a pod names, each once: those of its containers and of its
// volumes.
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

// RuntimeHandler is the runtime's handler that a pod asks for; empty for the default one.
// A RuntimeClass is an object of a cluster; here its name is the handler's.
func RuntimeHandler(pod *v1.Pod) string { return ptr.Deref(pod.Spec.RuntimeClassName, "") }
