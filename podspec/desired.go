package podspec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec/digest"
)

// Desired is one pod as it shall be, together with every object it refers to.
// It is complete: no file, no API server and no clock is needed beside it. It marshals to
// JSON so that it can be kept and applied again later. It is not changed any more once a hash
// was computed of it.
type Desired struct {
	// Pod is the pod with all defaults filled in; its namespace and uid are set.
	Pod *v1.Pod `json:"pod"`
	// Objects are the ConfigMaps, Secrets and bound claims of the pod's namespace that the pod
	// refers to. What is referred to and missing here is unresolved.
	Objects Objects `json:"objects"`
	// Shared names those of the Objects that are stored, and looked up anew for each pass, in the order of ObjectName.Compare. The
	// others are the pod's own.
	Shared []ObjectName `json:"shared,omitempty"`
	Origin
	// Redacted is set when digests stand for the values of Secrets.
	Redacted bool `json:"redacted,omitempty"`
	// Stored is set when this is podctl's own copy of the manifest that was applied last. It is
	// valid as long as no other manifest is applied.
	Stored bool `json:"-"`
	// Rebuilt is set when this was made of the records of a runtime and not of a manifest: the
	// Secrets are not known.
	Rebuilt bool `json:"-"`
	// WrittenUID is the uid that the manifest itself gives; empty when podctl has added one.
	WrittenUID types.UID `json:"-"`

	// key is the key of the digests which stand for values of Secrets, of which several goroutines may ask. Copies share it; nil until
	// one is set, where the pod may still change.
	key *atomic.Pointer[digest.Key]
	// memo keeps the hashes of a pod that does not change any more; nil for others.
	memo *memo
}

// Origin is where a pod, a workload or an object came from. It is no part of what is asked for.
type Origin struct {
	// Source names the document's origin: an absolute path, a URL, or "-".
	Source string `json:"source"`
	// Keeper is the source of an agent that brought it; empty if it was applied by hand. The pods of a workload have another one
	// than the workload.
	Keeper string `json:"keeper,omitempty"`
	// Set is the set that it was applied with, as NAMESPACE/NAME; empty for none.
	Set string `json:"set,omitempty"`
}

// New returns a pod that does not change any more: its hashes are computed once.
func New(pod *v1.Pod, source string, written types.UID) *Desired {
	return &Desired{Pod: pod, Origin: Origin{Source: source}, WrittenUID: written, memo: newMemo(), key: &atomic.Pointer[digest.Key]{}}
}

// WithPod returns another pod that takes the same objects and comes from the same source. Digests of it are made with the
// same key.
func (d *Desired) WithPod(pod *v1.Pod) *Desired {
	other := New(pod, d.Source, "")
	other.Objects, other.Shared = d.Objects, d.Shared
	if key := d.usedKey(); key != nil {
		other.UseKey(key)
	}
	return other
}

// Check returns an error when a Desired that was read from a file lacks what others rely on.
func (d *Desired) Check() error {
	if d.Pod == nil {
		return errors.New("it has no pod")
	}
	for _, null := range []string{
		nullIn("ConfigMap", d.Objects.ConfigMaps), nullIn("Secret", d.Objects.Secrets), nullIn("PersistentVolume of the claim", d.Objects.Volumes),
	} {
		if null != "" {
			return errors.New(null)
		}
	}
	return nil
}

// nullIn says which of some objects is null; empty if none is.
func nullIn[T any](what string, objects map[string]*T) string {
	for name, one := range objects {
		if one == nil {
			return fmt.Sprintf("the %s %q in it is null", what, name)
		}
	}
	return ""
}

// Objects are the API objects that pods refer to, by name. All
// of them belong to one namespace.
type Objects struct {
	ConfigMaps map[string]*v1.ConfigMap `json:"configMaps,omitempty"`
	Secrets    map[string]*v1.Secret    `json:"secrets,omitempty"`
	// Volumes are the paths of the host to which claims are bound, by the names of the claims.
	Volumes map[string]*HostVolume `json:"volumes,omitempty"`
}

// IsEmpty reports whether there is none.
func (o Objects) IsEmpty() bool { return len(o.ConfigMaps)+len(o.Secrets)+len(o.Volumes) == 0 }

// copied are the same objects in maps of their own.
func (o Objects) copied() Objects {
	return Objects{ConfigMaps: maps.Clone(o.ConfigMaps), Secrets: maps.Clone(o.Secrets), Volumes: maps.Clone(o.Volumes)}
}

// AlsoRunning returns a copy with ephemeral containers that run beside the manifest's. It is
// for looking at a pod, not for applying it.
func (d *Desired) AlsoRunning(added []v1.EphemeralContainer) *Desired {
	with := *d
	with.memo = nil
	with.Pod = d.Pod.DeepCopy()
	with.Pod.Spec.EphemeralContainers = slices.Concat(with.Pod.Spec.EphemeralContainers, added)
	return &with
}
