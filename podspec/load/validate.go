package load

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podapi "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/quote"
)

// validatePod applies the API server's rules for creating a pod. A manifest may have ephemeral containers. The API
// server accepts them only for an existing pod, with the same rules.
func (o *object) validatePod() {
	r, pod := o.report, o.pod
	// Allow privileged containers. As for the kubelet's static pods, the manifest decides about them, not a cluster's
	// policy.
	capabilities.Setup(true, 0)
	internal, err := created(pod)
	if err != nil {
		r.refuse(document.ClassInvalid, "", err.Error())
		return
	}
	internal.Name = completed(&pod.ObjectMeta)
	opts := podapi.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	opts.ResourceIsPod = true
	o.refuseErrors(slices.DeleteFunc(validation.ValidatePodCreate(internal, opts), isEphemeralOnCreate), nil)
	checkPodNames(r, pod)
}

// isEphemeralOnCreate reports whether an error is that a new pod must not have ephemeral containers.
func isEphemeralOnCreate(err *field.Error) bool {
	return err.Type == field.ErrorTypeForbidden && err.Field == "spec.ephemeralContainers"
}

// checkGeneratedName refuses an object with generateName but no name.
func checkGeneratedName(r *report, meta *metav1.ObjectMeta) {
	if isNameGenerated(meta) {
		r.refuse(document.ClassInvalid, "metadata.generateName",
			"is not a complete name: there is no API server to complete it, so set metadata.name")
	}
}

// fieldDetail describes the error of a field and the allowed values. It does not repeat values of a Secret.
func (r *report) fieldDetail(err *field.Error) string {
	if r.MayBeSecret() {
		err.BadValue = nil
	}
	if err.Field == "metadata.name" && err.Type == field.ErrorTypeRequired {
		return "is required"
	}
	switch err.Type {
	case field.ErrorTypeRequired:
		return withDetail("is required", err.Detail)
	case field.ErrorTypeDuplicate:
		return withDetail(fmt.Sprintf("%v is given twice", quoted(err.BadValue)), err.Detail)
	case field.ErrorTypeNotSupported:
		return withDetail(fmt.Sprintf("%v is not one of the allowed values", quoted(err.BadValue)), err.Detail)
	case field.ErrorTypeNotFound:
		return withDetail(fmt.Sprintf("%v does not exist in this pod", quoted(err.BadValue)), err.Detail)
	case field.ErrorTypeForbidden:
		return withDetail("is not allowed here", err.Detail)
	case field.ErrorTypeInvalid, field.ErrorTypeTypeInvalid:
		return withDetail(fmt.Sprintf("%v is not valid", quoted(err.BadValue)), err.Detail)
	case field.ErrorTypeTooLong:
		return withDetail("is too long", err.Detail)
	case field.ErrorTypeTooMany:
		return withDetail("has too many items", err.Detail)
	case field.ErrorTypeTooShort, field.ErrorTypeTooFew, field.ErrorTypeInternal:
	}
	return withDetail(strings.ToLower(string(err.Type)[:1])+string(err.Type)[1:], err.Detail)
}

func withDetail(text, detail string) string {
	if detail == "" {
		return text
	}
	return text + ": " + detail
}

// quoted formats a value of the API server's error. It follows pointers, so that no memory address is shown.
func quoted(value any) string {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.String {
		return quote.Value(v.String())
	}
	if text, ok := value.(fmt.Stringer); ok && v.IsValid() && v.Kind() != reflect.Pointer {
		return quote.Value(text.String())
	}
	if text := fmt.Sprint(v); v.IsValid() && isPlain(v.Type()) && len(text) <= 60 {
		return text
	}
	return "the value"
}

// isPlain reports whether values of a type have a short and stable printed form.
func isPlain(t reflect.Type) bool {
	kind := t.Kind()
	if kind == reflect.Slice || kind == reflect.Array {
		return t.Elem().Kind() == reflect.String || isPlain(t.Elem())
	}
	return kind >= reflect.Bool && kind <= reflect.Float64
}
