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

// typeMeta holds the fields at the beginning of every object.
type typeMeta struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

// object is one object of a manifest with the report on its document. It is a pod, a PersistentVolume, a workload, or
// one of the kinds of a podspec.Object. Its Volume is the host path that a claim is bound to.
type object struct {
	podspec.Object
	report *report
	meta   *metav1.ObjectMeta
	// writtenUID is the uid in the document.
	writtenUID types.UID
	// damaged is set if a part could not be decoded, or if another object has its name.
	damaged bool
	// duplicate is set if an earlier object has the same name or uid. The object then counts as absent.
	duplicate bool
	// extra is set if the object comes from --configmap.
	extra    bool
	pod      *v1.Pod
	volume   *v1.PersistentVolume
	workload *podspec.Workload
	// oldKind is the kind in the document if another one replaced it.
	oldKind string
	// ofDaemonSet is set for the pod of a DaemonSet's template, which selects nodes.
	ofDaemonSet bool
	// template is the completed pod of a workload's template.
	template *object
	// notes lists fields without effect. It omits those that depend on other objects.
	notes []document.Note
	// tokens holds the names of the pod's volumes that dropInjectedToken has removed.
	tokens map[string]bool
}

// newObject decodes a document of a kind that podctl accepts. It returns nil for another kind, and for a
// PersistentVolume that is not on a host path.
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

// object returns the object in the form that pods refer to.
func (o *object) object() *podspec.Object {
	kept := o.Object
	return &kept
}

// key returns namespace and name of an object.
func (o *object) key() string { return o.meta.Namespace + "/" + o.meta.Name }

// String returns kind, namespace and name of an object.
func (o *object) String() string { return o.report.Kind + " " + o.key() }

// typeMeta reads the kind of a document's object.
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
