package load

import (
	"encoding/json"
	"reflect"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
)

// typeMeta is what tells documents apart.
type typeMeta struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

// object is one object of a manifest and the document it came from.
type object struct {
	written podspec.Identity
	report  *report
	// damaged tells that some of it could not be decoded, or that its name is another's.
	damaged   bool
	pod       *v1.Pod
	configMap *v1.ConfigMap
	secret    *v1.Secret
	claim     *v1.PersistentVolumeClaim
	// tokens are the names of a pod's volumes that were left out.
	tokens map[string]bool
}

func (o *object) meta() *metav1.ObjectMeta {
	switch {
	case o.pod != nil:
		return &o.pod.ObjectMeta
	case o.configMap != nil:
		return &o.configMap.ObjectMeta
	case o.claim != nil:
		return &o.claim.ObjectMeta
	}
	return &o.secret.ObjectMeta
}

func (o *object) kind() string {
	switch {
	case o.pod != nil:
		return "Pod"
	case o.configMap != nil:
		return podspec.KindConfigMap
	case o.claim != nil:
		return podspec.KindClaim
	}
	return podspec.KindSecret
}

func (o *object) key() string { return o.meta().Namespace + "/" + o.meta().Name }

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
