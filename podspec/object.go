package podspec

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Object is a ConfigMap, a Secret, a claim or a Service: one of them is set.
type Object struct {
	ConfigMap *v1.ConfigMap
	Secret    *v1.Secret
	Claim     *v1.PersistentVolumeClaim
	Service   *v1.Service
	// Volume is the path of the host to which the claim is bound; nil for one whose data is in a directory of podctl's own.
	Volume *HostVolume
	Origin
}

// Kind is the kind of the object.
func (o *Object) Kind() string {
	switch {
	case o.ConfigMap != nil:
		return KindConfigMap
	case o.Secret != nil:
		return KindSecret
	case o.Service != nil:
		return KindService
	}
	return KindClaim
}

// Meta is the metadata of the object.
func (o *Object) Meta() *metav1.ObjectMeta {
	switch {
	case o.ConfigMap != nil:
		return &o.ConfigMap.ObjectMeta
	case o.Secret != nil:
		return &o.Secret.ObjectMeta
	case o.Service != nil:
		return &o.Service.ObjectMeta
	}
	return &o.Claim.ObjectMeta
}

// Name is the name of the object within its namespace.
func (o *Object) Name() ObjectName { return ObjectName{o.Kind(), o.Meta().Name} }

// DeepCopy is an object of its own with the same content.
func (o *Object) DeepCopy() *Object {
	return &Object{ConfigMap: o.ConfigMap.DeepCopy(), Secret: o.Secret.DeepCopy(), Claim: o.Claim.DeepCopy(), Service: o.Service.DeepCopy(), Volume: o.Volume, Origin: o.Origin}
}

// ReferredObjects lists the ConfigMaps, Secrets and claims that a pod names anywhere, each once.
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
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			names = append(names, ObjectName{KindClaim, claim.ClaimName})
		}
		for _, r := range VolumeReferences(&pod.Spec.Volumes[i], "") {
			names = append(names, ObjectName{r.Kind, r.Name})
		}
	}
	slices.SortFunc(names, ObjectName.Compare)
	return slices.Compact(names)
}
