package podspec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Desired is one pod as it shall be, together with every object it refers to.
// It is complete: whoever holds it needs no file, no API server and no clock to
// know what is wanted. It marshals to JSON so that it can be kept and applied
// again later. Nobody changes it once it was asked for a hash.
type Desired struct {
	// Pod is the pod with all defaults filled in; its namespace and uid are set.
	Pod *v1.Pod `json:"pod"`
	// Objects are the ConfigMaps and Secrets of the pod's namespace that the pod
	// refers to. What is referred to and missing here is unresolved.
	Objects Objects `json:"objects"`
	// Source names the document's origin: an absolute path, a URL, or "-".
	Source string `json:"source"`
	// Redacted tells that digests stand for the values of Secrets.
	Redacted bool `json:"redacted,omitempty"`
	// Stored tells that this is what podctl remembers as applied last, and no
	// manifest of the user's: it counts for as long as it is that.
	Stored bool `json:"-"`
	// Rebuilt tells that this was made of what a runtime has of a pod, and is no manifest: its
	// Secrets are not known.
	Rebuilt bool `json:"-"`

	// Written is the identity that the manifest itself gives, without what podctl adds.
	Written Identity `json:"-"`
	// key is that of the digests which stand for values of Secrets; nil when nobody has
	// set one.
	key *DigestKey
	// memo holds hashes of what was loaded, which nobody changes.
	memo *memo
}

// Identity is what ties a manifest to its pod beside the name.
type Identity struct {
	Namespace string
	UID       types.UID
}

// New returns a pod that nobody changes any more: its hashes are computed once.
func New(pod *v1.Pod, source string, written Identity) *Desired {
	return &Desired{Pod: pod, Source: source, Written: written, memo: newMemo()}
}

// AsWritten is the pod with its defaults, and without the namespace and uid that
// the manifest leaves to podctl.
func (d *Desired) AsWritten() *v1.Pod {
	pod := d.Pod.DeepCopy()
	pod.Namespace, pod.UID = d.Written.Namespace, d.Written.UID
	return pod
}

// Check finds what is missing in a pod that was read from a file, and that whoever is
// given one relies on.
func (d *Desired) Check() error {
	if d.Pod == nil {
		return errors.New("it has no pod")
	}
	for name, one := range d.Objects.ConfigMaps {
		if one == nil {
			return fmt.Errorf("the ConfigMap %q in it is null", name)
		}
	}
	for name, one := range d.Objects.Secrets {
		if one == nil {
			return fmt.Errorf("the Secret %q in it is null", name)
		}
	}
	return nil
}

// Objects are the API objects that manifests supply beside pods, by name. All
// of them belong to one namespace.
type Objects struct {
	ConfigMaps map[string]*v1.ConfigMap `json:"configMaps,omitempty"`
	Secrets    map[string]*v1.Secret    `json:"secrets,omitempty"`
}

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
		refs = append(refs, ContainerRef{Container: c, Type: initType(c), Index: i, Path: indexed("spec.initContainers", i)})
	}
	return refs
}

// RegularContainers lists spec.containers in order.
func RegularContainers(pod *v1.Pod) []ContainerRef {
	refs := make([]ContainerRef, 0, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		refs = append(refs, ContainerRef{Container: &pod.Spec.Containers[i], Type: Regular, Index: i, Path: indexed("spec.containers", i)})
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
			Path:      indexed("spec.ephemeralContainers", i),
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

func indexed(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
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
