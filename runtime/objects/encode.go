package objects

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Redacted replaces the values of Secrets in printed objects. A Secret with this value is never stored: otherwise an
// applied copy of the output would replace the real value.
const Redacted = redaction.Hidden

// lastApplied is kubectl's annotation with the whole object, including the values of a Secret.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// These annotations store in the file of an object its set, its owner (a source of the agent) and its manifest.
const (
	setAnnotation    = "podctl.io/set"
	ownerAnnotation  = "podctl.io/owner"
	sourceAnnotation = "podctl.io/source"
	// volumeAnnotation is the path of the host to which a claim is bound, as JSON.
	volumeAnnotation = "podctl.io/volume"
	// unusableAnnotation is the reason why a pod cannot use the object, as JSON.
	unusableAnnotation = "podctl.io/unusable"
)

// KeyOf returns the key of an object.
func KeyOf(o *podspec.Object) state.ObjectKey {
	return state.ObjectKey{Namespace: o.Meta().Namespace, Kind: o.Kind(), Name: o.Meta().Name}
}

// Normal returns an object as it is stored: without the fields that an API server adds.
func Normal(o *podspec.Object) *podspec.Object {
	o = o.DeepCopy()
	meta := o.Meta()
	*meta = metav1.ObjectMeta{
		Name:        meta.Name,
		Namespace:   meta.Namespace,
		Labels:      meta.Labels,
		Annotations: meta.Annotations,
	}
	delete(meta.Annotations, lastApplied)
	deleteOwn(meta)
	if o.Owner == "" {
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

// checkRedacted refuses a Secret from podctl's own output.
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

// encode returns the text of an object's file.
func encode(o *podspec.Object) ([]byte, error) {
	o = o.DeepCopy()
	volume, err := textOf(o.Volume)
	unusable, unusableErr := textOf(o.Unusable)
	if err = errors.Join(err, unusableErr); err != nil {
		return nil, err
	}
	annotations := map[string]string{
		setAnnotation:      o.Set,
		ownerAnnotation:    o.Owner,
		sourceAnnotation:   o.Source,
		volumeAnnotation:   volume,
		unusableAnnotation: unusable,
	}
	for name, value := range annotations {
		if value != "" {
			metav1.SetMetaDataAnnotation(o.Meta(), name, value)
		}
	}
	return json.Marshal(o.API())
}

// textOf returns a value as JSON; empty for nil.
func textOf[T any](value *T) (string, error) {
	if value == nil {
		return "", nil
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// takeOwn moves the set and the source of an object from the annotations of its file to fields.
func takeOwn(o *podspec.Object) error {
	meta := o.Meta()
	if text := meta.Annotations[volumeAnnotation]; text != "" && o.Claim != nil {
		if err := json.Unmarshal([]byte(text), &o.Volume); err != nil {
			return err
		}
	}
	if text := meta.Annotations[unusableAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &o.Unusable); err != nil {
			return err
		}
	}
	own := meta.Annotations
	o.Set, o.Owner, o.Source = own[setAnnotation], own[ownerAnnotation], own[sourceAnnotation]
	deleteOwn(meta)
	return nil
}

// deleteOwn removes the annotations that only the file of an object has.
func deleteOwn(meta *metav1.ObjectMeta) {
	for _, name := range []string{
		setAnnotation, ownerAnnotation, sourceAnnotation, volumeAnnotation, unusableAnnotation,
	} {
		delete(meta.Annotations, name)
	}
	if len(meta.Annotations) == 0 {
		meta.Annotations = nil
	}
}

// decode decodes an object's file. The contents must match the key. It omits errors of the parser, because they could
// repeat a value of a Secret.
func decode(key state.ObjectKey, text []byte) (*podspec.Object, error) {
	o := podspec.NewObject(key.Kind)
	if o == nil || model.DecodeDocument(text, o.API()) != nil {
		return nil, fmt.Errorf("%w: it is not a %s", state.ErrDamaged, key.Kind)
	}
	if found := KeyOf(o); found != key {
		return nil, fmt.Errorf("%w: it belongs to another object", state.ErrDamaged)
	}
	if takeOwn(o) != nil {
		return nil, fmt.Errorf("%w: an annotation of podctl's own cannot be read", state.ErrDamaged)
	}
	return o, nil
}
