package owner

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
)

// Thing is a wanted or stored pod, workload or object. Exactly one of the first three fields is set.
type Thing struct {
	Pod      *podspec.Desired
	Workload *podspec.Workload
	Object   *podspec.Object

	// Keeper is the source of the thing. It is empty for one that was applied by hand. File is the text of the thing.
	Keeper, File string
	// name is unique in sources that identify things by name. uid is the UID of the pod, or of the workload's first
	// pod.
	name ID
	uid  types.UID
}

// ID identifies a thing: a pod by its UID, others by name.
type ID struct {
	Kind, Namespace, Name string
	UID                   types.UID
}

// Pod returns the thing of a pod.
func Pod(d *podspec.Desired) Thing {
	return Thing{Pod: d, Keeper: d.Keeper, File: d.Source, name: nameOf(podspec.KindPod, &d.Pod.ObjectMeta), uid: d.Pod.UID}
}

// Workload returns the thing of a workload.
func Workload(w *podspec.Workload) Thing {
	return Thing{Workload: w, Keeper: w.Keeper, File: w.Source, name: nameOf(w.Kind(), w.Meta()), uid: w.Template.Pod.UID}
}

// Object returns the thing of an object that is stored for pods.
func Object(o *podspec.Object) Thing {
	return Thing{Object: o, Keeper: o.Keeper, File: o.Source, name: nameOf(o.Kind(), o.Meta())}
}

func nameOf(kind string, meta *metav1.ObjectMeta) ID {
	return ID{Kind: kind, Namespace: meta.Namespace, Name: meta.Name}
}

// PodID returns the ID of the pod with a UID.
func PodID(uid types.UID) ID { return ID{Kind: podspec.KindPod, UID: uid} }

// ID returns the ID of the thing.
func (t *Thing) ID() ID {
	if t.Pod != nil {
		return PodID(t.uid)
	}
	return t.name
}

// String returns the kind and the name in the form of the API server.
func (t *Thing) String() string { return t.name.Kind + " " + t.name.Namespace + "/" + t.name.Name }

// Record is a stored thing.
type Record struct {
	Thing
	// Deleting is set for a pod whose deletion has begun.
	Deleting bool
}
