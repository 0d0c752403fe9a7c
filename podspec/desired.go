package podspec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec/digest"
)

// Desired is the wanted state of one pod with every object it refers to. It is complete: no file, API server or clock
// is needed to use it. It marshals to JSON, so it can be stored and applied again. It must not change once a hash was
// computed.
type Desired struct {
	// Pod is the pod with all defaults. Its namespace and uid are set.
	Pod *v1.Pod `json:"pod"`
	// Objects holds the ConfigMaps, Secrets and bound claims of the pod's namespace that the pod refers to. References
	// to objects that are missing here are unresolved.
	Objects Objects `json:"objects"`
	// Shared names the Objects that come from the store and are looked up in each pass, in the order of
	// ObjectName.Compare. The other objects belong to the pod alone.
	Shared []ObjectName `json:"shared,omitempty"`
	Origin
	// Unread are the objects whose content is unknown, because the API server has not sent them. Nothing is assumed
	// about them: also an optional one may exist. Claims that cannot be used are here, too.
	Unread map[ObjectName]UnreadError `json:"-"`
	// Redacted is set if digests replace the values of Secrets.
	Redacted bool `json:"redacted,omitempty"`
	// MemorySecrets is set for a pod of the API server if no value of a Secret or token may be on disk: its
	// checkpoint is redacted.
	MemorySecrets bool `json:"memorySecrets,omitempty"`
	// Stored is set if this is podctl's copy of the manifest that was applied last. It is valid until another manifest
	// is applied.
	Stored bool `json:"-"`
	// Rebuilt is set if this was built from a runtime's records instead of a manifest. The Secrets are then unknown.
	Rebuilt bool `json:"-"`
	// WrittenUID is the uid in the manifest, or empty if podctl added one.
	WrittenUID types.UID `json:"-"`

	// key is the key of the digests that replace values of Secrets. Several goroutines may use it, and copies share it.
	// It is nil until a key is set for a pod that may still change.
	key *atomic.Pointer[digest.Key]
	// memo caches the hashes of a pod that no longer changes; nil for other pods.
	memo *memo
}

// Origin is where a pod, a workload or an object came from. It is not part of the wanted state.
type Origin struct {
	// Source names the origin of the document: an absolute path, a URL, or "-".
	Source string `json:"source"`
	// Owner is the name of the agent's source that owns the object: the source that provides its manifest, or
	// "workloads" for the pods of a workload. It is empty if the object was applied by hand. It is not related to
	// ownerReferences.
	Owner string `json:"owner,omitempty"`
	// Set is the set that it was applied with, as NAMESPACE/NAME, or empty.
	Set string `json:"set,omitempty"`
}

// OwnerAPI is the owner of every pod of the API server (Origin): the agent's source that watches the server.
const OwnerAPI = "api"

// FromCluster reports whether the API server owns the pod. podctl has fewer features beyond a kubelet for such a pod: a
// value of a ConfigMap or Secret, and a request to restart a workload, restart nothing (docs/differences.md).
func (o Origin) FromCluster() bool { return o.Owner == OwnerAPI }

// AnnotationConfigSource is a kubelet's annotation with the source of a pod: api, file or http (kubelet:
// types.ConfigSourceAnnotationKey). podctl prints it, but never stores it.
const AnnotationConfigSource = "kubernetes.io/config.source"

// MarkSource annotates a copy of a pod of the API server with its source. Other pods stay as they are.
func (o Origin) MarkSource(pod *v1.Pod) {
	if !o.FromCluster() {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[AnnotationConfigSource] = OwnerAPI
}

// IsMirror reports whether a pod of the API server only shows a pod of another source (kubelet: IsMirrorPod).
func IsMirror(pod *v1.Pod) bool {
	_, is := pod.Annotations[v1.MirrorPodAnnotationKey]
	return is
}

// MirrorName returns the name of the mirror pod of a pod (kubelet: generatePodName).
func MirrorName(namespace, name, node string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name + "-" + strings.ToLower(node)}
}

// New returns a pod that no longer changes, so its hashes are computed only once.
func New(pod *v1.Pod, source string, written types.UID) *Desired {
	return &Desired{
		Pod:        pod,
		Origin:     Origin{Source: source},
		WrittenUID: written,
		memo:       newMemo(),
		key:        &atomic.Pointer[digest.Key]{},
	}
}

// NewFromCluster returns a pod of the API server. The pod must not change any more.
func NewFromCluster(pod *v1.Pod) *Desired {
	d := New(pod, OwnerAPI, pod.UID)
	d.Owner = OwnerAPI
	return d
}

// WithPod returns another pod with the same objects, source and key for digests.
func (d *Desired) WithPod(pod *v1.Pod) *Desired {
	other := New(pod, d.Source, "")
	other.Objects, other.Shared, other.Unread, other.MemorySecrets = d.Objects, d.Shared, d.Unread, d.MemorySecrets
	if key := d.usedKey(); key != nil {
		other.UseKey(key)
	}
	return other
}

// Check returns an error if a Desired that was read from a file lacks required fields.
func (d *Desired) Check() error {
	if d.Pod == nil {
		return errors.New("it has no pod")
	}
	for _, null := range []string{
		nullIn("ConfigMap", d.Objects.ConfigMaps),
		nullIn("Secret", d.Objects.Secrets),
		nullIn("PersistentVolume of the claim", d.Objects.Volumes),
	} {
		if null != "" {
			return errors.New(null)
		}
	}
	return nil
}

// nullIn describes the first null entry of a map, or returns an empty string.
func nullIn[T any](what string, objects map[string]*T) string {
	for name, one := range objects {
		if one == nil {
			return fmt.Sprintf("the %s %q in it is null", what, name)
		}
	}
	return ""
}

// Objects holds the API objects that pods refer to, by name. All belong to one namespace.
type Objects struct {
	ConfigMaps map[string]*v1.ConfigMap `json:"configMaps,omitempty"`
	Secrets    map[string]*v1.Secret    `json:"secrets,omitempty"`
	// Volumes maps the names of claims to the host paths they are bound to.
	Volumes map[string]*HostVolume `json:"volumes,omitempty"`
}

// IsEmpty reports whether there are no objects.
func (o Objects) IsEmpty() bool { return len(o.ConfigMaps)+len(o.Secrets)+len(o.Volumes) == 0 }

// copied returns the same objects in new maps.
func (o Objects) copied() Objects {
	return Objects{ConfigMaps: maps.Clone(o.ConfigMaps), Secrets: maps.Clone(o.Secrets), Volumes: maps.Clone(o.Volumes)}
}

// Compared returns the part of the pod that makes two versions of it differ. For a pod of the API server, it omits
// metadata.generation and metadata.resourceVersion, which change with every write of the object, for example of its
// status. The caller must not change the result.
func (d *Desired) Compared() *v1.Pod {
	if !d.FromCluster() || d.Pod == nil {
		return d.Pod
	}
	pod := *d.Pod
	pod.Generation, pod.ResourceVersion = 0, ""
	return &pod
}

// RestartedAt returns when a restart of a workload's pod was requested. It is zero without a request or a valid time,
// and for a pod without a controlling Deployment, ReplicaSet, StatefulSet or DaemonSet. It is also zero for a pod of
// the API server: in a cluster, the controllers create new pods, and the annotation alone restarts nothing.
func (d *Desired) RestartedAt() time.Time {
	text, given := d.Pod.Annotations[AnnotationRestartedAt]
	if !given || d.FromCluster() {
		return time.Time{}
	}
	owner := metav1.GetControllerOfNoCopy(d.Pod)
	if owner == nil {
		return time.Time{}
	}
	switch owner.Kind {
	case KindDeployment, KindReplicaSet, KindStatefulSet, KindDaemonSet:
		at, _ := time.Parse(time.RFC3339, text) // An invalid time is zero.
		return at
	}
	return time.Time{}
}

// WithResources returns a pod with the resources of an earlier version, for each container that both have and for the
// pod as a whole (kubelet: updatePodFromAllocation). It returns d if none differs.
func WithResources(d *Desired, earlier *v1.Pod) *Desired {
	with := *d
	with.memo = nil
	with.Pod = d.Pod.DeepCopy()
	with.Pod.Spec.Resources = earlier.Spec.Resources.DeepCopy()
	for _, ref := range Containers(with.Pod) {
		if before, ok := FindContainer(earlier, ref.Name); ok {
			ref.Resources = *before.Resources.DeepCopy()
		}
	}
	if equality.Semantic.DeepEqual(&d.Pod.Spec, &with.Pod.Spec) {
		return d
	}
	return &with
}

// AlsoRunning returns a copy that also has ephemeral containers added to the running pod. Use the copy to inspect the
// pod, not to apply it.
func (d *Desired) AlsoRunning(added []v1.EphemeralContainer) *Desired {
	with := *d
	with.memo = nil
	with.Pod = d.Pod.DeepCopy()
	with.Pod.Spec.EphemeralContainers = slices.Concat(with.Pod.Spec.EphemeralContainers, added)
	return &with
}
