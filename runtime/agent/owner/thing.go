package owner

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
)

// Thing is a pod, a workload or an object, as a source wants it or as it is stored. One of the first three fields is set.
type Thing struct {
	Pod      *podspec.Desired
	Workload *podspec.Workload
	Object   *podspec.Object

	// Keeper is the source that brought the thing, empty for one that was applied by hand, and File the text that it is from.
	Keeper, File string
	// name is the name that only one thing of a source with names can have, and uid that of the pod, or of the first pod of the
	// workload.
	name ID
	uid  types.UID
}

// ID identifies a thing: a pod by its uid, others by name.
type ID struct {
	Kind, Namespace, Name string
	UID                   types.UID
}

// Pod is a pod.
func Pod(d *podspec.Desired) Thing {
	return Thing{Pod: d, Keeper: d.Keeper, File: d.Source, name: nameOf(podspec.KindPod, &d.Pod.ObjectMeta), uid: d.Pod.UID}
}

// Workload is a workload.
func Workload(w *podspec.Workload) Thing {
	return Thing{Workload: w, Keeper: w.Keeper, File: w.Source, name: nameOf(w.Kind(), w.Meta()), uid: w.Template.Pod.UID}
}

// Object is an object that is stored for pods.
func Object(o *podspec.Object) Thing {
	return Thing{Object: o, Keeper: o.Keeper, File: o.Source, name: nameOf(o.Kind(), o.Meta())}
}

func nameOf(kind string, meta *metav1.ObjectMeta) ID {
	return ID{Kind: kind, Namespace: meta.Namespace, Name: meta.Name}
}

// PodID is the identity of the pod with a uid.
func PodID(uid types.UID) ID { return ID{Kind: podspec.KindPod, UID: uid} }

// ID returns the identity of the thing.
func (t *Thing) ID() ID {
	if t.Pod != nil {
		return PodID(t.uid)
	}
	return t.name
}

// String is the kind and the name, as the API server writes them.
func (t *Thing) String() string { return t.name.Kind + " " + t.name.Namespace + "/" + t.name.Name }

// Record is a stored thing.
type Record struct {
	Thing
	// Deleting is set for a pod whose deletion has begun.
	Deleting bool
}
