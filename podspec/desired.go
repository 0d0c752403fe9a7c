package podspec

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec/digest"
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
	key *digest.Key
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

// AlsoRunning is what is desired together with ephemeral containers that run beside
// it; it is for looking at a pod, not for applying it.
func (d *Desired) AlsoRunning(added []v1.EphemeralContainer) *Desired {
	with := *d
	with.memo = nil
	with.Pod = d.Pod.DeepCopy()
	with.Pod.Spec.EphemeralContainers = slices.Concat(with.Pod.Spec.EphemeralContainers, added)
	return &with
}
