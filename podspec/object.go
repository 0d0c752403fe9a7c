package podspec

import (
	"cmp"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ObjectName names a ConfigMap, a Secret or a claim within its namespace.
type ObjectName struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Compare orders names by kind and name.
func (n ObjectName) Compare(other ObjectName) int {
	return cmp.Or(cmp.Compare(n.Kind, other.Kind), cmp.Compare(n.Name, other.Name))
}

// Object is a ConfigMap, a Secret, a claim or a Service. Exactly one of them is set.
type Object struct {
	ConfigMap *v1.ConfigMap
	Secret    *v1.Secret
	Claim     *v1.PersistentVolumeClaim
	Service   *v1.Service
	// Volume is the path of the host that the claim is bound to. It is nil if the data is in a directory of podctl.
	Volume *HostVolume
	// Unusable is the reason why a pod of the API server cannot use the object; nil if it can.
	Unusable *UnreadError
	Origin
}

// NewObject returns an empty object of a kind, or nil for a kind that is not stored.
func NewObject(kind string) *Object {
	switch kind {
	case KindConfigMap:
		return &Object{ConfigMap: &v1.ConfigMap{}}
	case KindSecret:
		return &Object{Secret: &v1.Secret{}}
	case KindClaim:
		return &Object{Claim: &v1.PersistentVolumeClaim{}}
	case KindService:
		return &Object{Service: &v1.Service{}}
	}
	return nil
}

// API returns the object that is set.
func (o *Object) API() API {
	switch {
	case o.ConfigMap != nil:
		return o.ConfigMap
	case o.Secret != nil:
		return o.Secret
	case o.Service != nil:
		return o.Service
	}
	return o.Claim
}

// Kind returns the kind of the object.
func (o *Object) Kind() string { return kindOf(o.API()) }

// Meta returns the metadata of the object.
func (o *Object) Meta() *metav1.ObjectMeta { return MetaOf(o.API()) }

// API is an object of the API.
type API interface {
	runtime.Object
	metav1.ObjectMetaAccessor
}

// MetaOf returns the metadata of an object of the API.
func MetaOf(o API) *metav1.ObjectMeta {
	meta, _ := o.GetObjectMeta().(*metav1.ObjectMeta)
	return meta
}

// kindOf returns the kind of an object of the API, which is the name of its Go type.
func kindOf(o API) string { return reflect.TypeOf(o).Elem().Name() }

// DeepCopy returns a copy that shares only Volume and Unusable.
func (o *Object) DeepCopy() *Object {
	return &Object{
		ConfigMap: o.ConfigMap.DeepCopy(),
		Secret:    o.Secret.DeepCopy(),
		Claim:     o.Claim.DeepCopy(),
		Service:   o.Service.DeepCopy(),
		Volume:    o.Volume,
		Unusable:  o.Unusable,
		Origin:    o.Origin,
	}
}

// ReferredObjects returns the ConfigMaps, Secrets and claims that a pod names, without duplicates.
func ReferredObjects(pod *v1.Pod) []ObjectName {
	var names []ObjectName
	for _, ref := range pod.Spec.ImagePullSecrets {
		names = append(names, ObjectName{KindSecret, ref.Name})
	}
	for _, ref := range Containers(pod) {
		for _, r := range EnvReferences(ref) {
			names = append(names, ObjectName{r.Kind, r.Name})
		}
	}
	for i := range pod.Spec.Volumes {
		if vol := &pod.Spec.Volumes[i]; isClaim(vol) {
			names = append(names, ObjectName{KindClaim, ClaimName(pod, vol)})
		}
		for _, r := range VolumeReferences(&pod.Spec.Volumes[i], "") {
			names = append(names, ObjectName{r.Kind, r.Name})
		}
	}
	slices.SortStableFunc(names, ObjectName.Compare)
	return slices.Compact(names)
}
