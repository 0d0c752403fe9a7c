package load

import (
	"encoding/json"
	"reflect"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
)

// typeMeta is what every object begins with.
type typeMeta struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

// object is one object of a manifest and the report on its document. It is a pod, a PersistentVolume, a workload, or one of the
// kinds of a podspec.Object, whose Volume is the path of the host to which the claim is bound. Meta is its metadata.
type object struct {
	podspec.Object
	report *report
	meta   *metav1.ObjectMeta
	// writtenUID is the uid that the document gives.
	writtenUID types.UID
	// damaged is set when some of it could not be decoded, or another object has its name.
	damaged bool
	// duplicate is set when an object before it has its name or its uid: it counts as absent.
	duplicate bool
	// beside is set when it comes from a file that only adds to the manifests.
	beside   bool
	pod      *v1.Pod
	volume   *v1.PersistentVolume
	workload *podspec.Workload
	// oldKind is the kind that the document gives, where another one has taken its place.
	oldKind string
	// ofDaemonSet is set for the pod of the template of one: it says which nodes it is for.
	ofDaemonSet bool
	// template is the completed pod of the template of a workload.
	template *object
	// notes say what of the object has no effect, as far as that is known without other objects.
	notes []document.Note
	// tokens are the names of a pod's volumes that were left out.
	tokens map[string]bool
}

// newObject decodes a document of a kind that podctl takes; nil for another kind. Of PersistentVolumes it takes those on a path of
// the host.
func (a *reading) newObject(r *report, version string) *object {
	o := &object{report: r, pod: &v1.Pod{}}
	var into podspec.API = o.pod
	stored, workload := podspec.NewObject(r.Kind), podspec.NewWorkload(r.Kind)
	switch is := version + "/" + r.Kind; {
	case is == "v1/"+kindReplicationController && a.loader.Workloads:
		return newReplicationController(r)
	case is == "v1/"+podspec.KindVolume:
		o.pod, o.volume = nil, &v1.PersistentVolume{}
		into = o.volume
	case podspec.KindNamed(r.Kind).APIVersion != version:
		return nil
	case stored != nil && (a.loader.Workloads || r.Kind != podspec.KindService):
		o.pod, o.Object, into = nil, *stored, stored.API()
	case workload != nil && a.loader.Workloads:
		o.pod, o.workload, into = nil, workload, workload.API()
	case r.Kind != podspec.KindPod:
		return nil
	}
	r.decodeInto(into)
	if o.volume != nil && podspec.HostVolumeOf(o.volume) == nil {
		return nil
	}
	o.meta = podspec.MetaOf(into)
	o.Source = r.File
	if o.workload != nil {
		o.workload.Source = r.File
	}
	return o
}

// object is the object as pods refer to it.
func (o *object) object() *podspec.Object {
	kept := o.Object
	return &kept
}

// key is the name of an object with its namespace.
func (o *object) key() string { return o.meta.Namespace + "/" + o.meta.Name }

// String is the name of an object with its kind.
func (o *object) String() string { return o.report.Kind + " " + o.key() }

// typeMeta reads what kind of object a document is.
func (r *report) typeMeta() typeMeta {
	var meta typeMeta
	if json.Unmarshal(r.JSON, &meta) == nil {
		return meta
	}
	meta = typeMeta{}
	if err := json.Unmarshal(r.dropMistyped(reflect.TypeOf(meta)), &meta); err != nil {
		r.refuseValue("", "cannot be read as a Kubernetes object")
	}
	return meta
}
