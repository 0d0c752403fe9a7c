package objects

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Redacted is what stands for the values of Secrets where an object is printed. No Secret with it
// is stored: printed and applied again, it would replace the value.
const Redacted = redaction.Hidden

// lastApplied is kubectl's annotation with the whole object, the values of a Secret included.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// These annotations have the set of an object in its file, and the source of an agent that brought it with the manifest it is from.
const (
	setAnnotation    = "podctl.io/set"
	keeperAnnotation = "podctl.io/keeper"
	sourceAnnotation = "podctl.io/source"
	// volumeAnnotation is the path of the host to which a claim is bound, as JSON.
	volumeAnnotation = "podctl.io/volume"
)

// KeyOf names an object.
func KeyOf(o *podspec.Object) state.ObjectKey {
	return state.ObjectKey{Namespace: o.Meta().Namespace, Kind: o.Kind(), Name: o.Meta().Name}
}

// normal is an object as it is stored: without what belongs to the server that it came from.
func normal(o *podspec.Object) *podspec.Object {
	o = o.DeepCopy()
	meta := o.Meta()
	*meta = metav1.ObjectMeta{Name: meta.Name, Namespace: meta.Namespace, Labels: meta.Labels, Annotations: meta.Annotations}
	delete(meta.Annotations, lastApplied)
	deleteOwn(meta)
	if o.Keeper == "" {
		o.Source = ""
	}
	o.API().GetObjectKind().SetGroupVersionKind(v1.SchemeGroupVersion.WithKind(o.Kind()))
	switch {
	case o.Secret != nil:
		o.Secret.Type = cmp.Or(o.Secret.Type, v1.SecretTypeOpaque)
	case o.Service != nil:
		o.Service.Status = v1.ServiceStatus{}
	case o.Claim != nil:
		o.Claim.Status = v1.PersistentVolumeClaimStatus{}
	}
	return o
}

// checkRedacted refuses a Secret that was printed by podctl.
func checkRedacted(o *podspec.Object) error {
	if o.Secret == nil {
		return nil
	}
	for key, value := range o.Secret.Data {
		if bytes.Equal(value, []byte(Redacted)) {
			return &RedactedError{Key: KeyOf(o), Data: key}
		}
	}
	return nil
}

// encode is the text of an object's file.
func encode(o *podspec.Object) ([]byte, error) {
	o = o.DeepCopy()
	volume := ""
	if o.Volume != nil {
		text, err := json.Marshal(o.Volume)
		if err != nil {
			return nil, err
		}
		volume = string(text)
	}
	for name, value := range map[string]string{setAnnotation: o.Set, keeperAnnotation: o.Keeper, sourceAnnotation: o.Source, volumeAnnotation: volume} {
		if value != "" {
			metav1.SetMetaDataAnnotation(o.Meta(), name, value)
		}
	}
	return json.Marshal(o.API())
}

// takeOwn takes the set of an object and its source out of its annotations, where nobody but its file has them.
func takeOwn(o *podspec.Object) error {
	meta := o.Meta()
	if text := meta.Annotations[volumeAnnotation]; text != "" && o.Claim != nil {
		if err := json.Unmarshal([]byte(text), &o.Volume); err != nil {
			return err
		}
	}
	o.Set, o.Keeper, o.Source = meta.Annotations[setAnnotation], meta.Annotations[keeperAnnotation], meta.Annotations[sourceAnnotation]
	deleteOwn(meta)
	return nil
}

// deleteOwn removes the annotations that only the file of an object has.
func deleteOwn(meta *metav1.ObjectMeta) {
	for _, name := range []string{setAnnotation, keeperAnnotation, sourceAnnotation, volumeAnnotation} {
		delete(meta.Annotations, name)
	}
	if len(meta.Annotations) == 0 {
		meta.Annotations = nil
	}
}

// decode reads an object's file. What is in it must be what its place says. Errors of the parser
// could repeat a value of a Secret, and are left out.
func decode(key state.ObjectKey, text []byte) (*podspec.Object, error) {
	o := podspec.NewObject(key.Kind)
	if o == nil || model.DecodeDocument(text, o.API()) != nil {
		return nil, fmt.Errorf("%w: it is no %s", state.ErrDamaged, key.Kind)
	}
	if found := KeyOf(o); found != key {
		return nil, fmt.Errorf("%w: it is of another object", state.ErrDamaged)
	}
	if takeOwn(o) != nil {
		return nil, fmt.Errorf("%w: its annotation %s cannot be read", state.ErrDamaged, volumeAnnotation)
	}
	return o, nil
}
