package owner

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
)

// Resource is a wanted or stored pod, workload or object. Exactly one of the first three fields is set.
type Resource struct {
	Pod      *podspec.Desired
	Workload *podspec.Workload
	Object   *podspec.Object

	// Owner is the source that owns the resource (podspec.Origin). It is empty for one that was applied by hand. File
	// is the text of the resource.
	Owner, File string
	// name is unique in sources that identify resources by name. uid is the UID of the pod, or of the workload's first
	// pod.
	name ID
	uid  types.UID
}

// ID identifies a resource: a pod by its UID, others by name.
type ID struct {
	Kind, Namespace, Name string
	UID                   types.UID
}

// Pod returns the resource of a pod.
func Pod(d *podspec.Desired) Resource {
	name := nameOf(podspec.KindPod, &d.Pod.ObjectMeta)
	return Resource{Pod: d, Owner: d.Owner, File: d.Source, name: name, uid: d.Pod.UID}
}

// Workload returns the resource of a workload.
func Workload(w *podspec.Workload) Resource {
	name := nameOf(w.Kind(), w.Meta())
	return Resource{Workload: w, Owner: w.Owner, File: w.Source, name: name, uid: w.Template.Pod.UID}
}

// Object returns the resource of an object that is stored for pods.
func Object(o *podspec.Object) Resource {
	return Resource{Object: o, Owner: o.Owner, File: o.Source, name: nameOf(o.Kind(), o.Meta())}
}

func nameOf(kind string, meta *metav1.ObjectMeta) ID {
	return ID{Kind: kind, Namespace: meta.Namespace, Name: meta.Name}
}

// PodID returns the ID of the pod with a UID.
func PodID(uid types.UID) ID { return ID{Kind: podspec.KindPod, UID: uid} }

// ID returns the ID of the resource.
func (t *Resource) ID() ID {
	if t.Pod != nil {
		return PodID(t.uid)
	}
	return t.name
}

// String returns the kind and the name in the form of the API server.
func (t *Resource) String() string { return t.name.Kind + " " + t.name.Namespace + "/" + t.name.Name }

// Record is a stored resource.
type Record struct {
	Resource
	// Deleting is set for a pod whose deletion has begun.
	Deleting bool
	// Ends is the grace period in seconds of a pod whose end has begun because its source deletes it. It is nil for
	// other pods.
	Ends *int64
}
