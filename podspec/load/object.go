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

// object is one object of a manifest and the report on its document. One of pod, configMap,
// secret, claim, volume, service and workload is set, and meta is its metadata.
type object struct {
	report *report
	meta   *metav1.ObjectMeta
	// writtenUID is the uid that the document gives.
	writtenUID types.UID
	// damaged is set when some of it could not be decoded, or another object has its name.
	damaged bool
	// duplicate is set when an object before it has its name or its uid: it counts as absent.
	duplicate bool
	// beside is set when it comes from a file that only adds to the manifests.
	beside    bool
	pod       *v1.Pod
	configMap *v1.ConfigMap
	secret    *v1.Secret
	claim     *v1.PersistentVolumeClaim
	// bound is the path of the host to which the claim is bound; nil for none.
	bound    *podspec.HostVolume
	volume   *v1.PersistentVolume
	service  *v1.Service
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

// newObject decodes a document of a kind that podctl takes; nil for another kind.
func newObject(r *report, version string) *object {
	o := &object{report: r}
	switch version + "/" + r.Kind {
	case "v1/Pod":
		o.pod = &v1.Pod{}
		o.meta = &o.pod.ObjectMeta
		r.decodeInto(o.pod)
	case "v1/ConfigMap":
		o.configMap = &v1.ConfigMap{}
		o.meta = &o.configMap.ObjectMeta
		r.decodeInto(o.configMap)
	case "v1/Secret":
		o.secret = &v1.Secret{}
		o.meta = &o.secret.ObjectMeta
		r.decodeInto(o.secret)
	case "v1/PersistentVolumeClaim":
		o.claim = &v1.PersistentVolumeClaim{}
		o.meta = &o.claim.ObjectMeta
		r.decodeInto(o.claim)
	default:
		return nil
	}
	return o
}

// object is the object as pods refer to it.
func (o *object) object() *podspec.Object {
	return &podspec.Object{ConfigMap: o.configMap, Secret: o.secret, Claim: o.claim, Volume: o.bound, Service: o.service, Origin: podspec.Origin{Source: o.report.File}}
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
