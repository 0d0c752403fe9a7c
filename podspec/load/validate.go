package load

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podapi "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

// setDefaults fills in what the API server would (corev1.SetObjectDefaults_Pod),
// and the namespace and uid that podctl gives.
func setDefaults(pod *v1.Pod) {
	pod.APIVersion, pod.Kind = "v1", "Pod"
	if pod.Namespace == "" {
		pod.Namespace = v1.NamespaceDefault
	}
	if pod.UID == "" && pod.Name != "" {
		pod.UID = podspec.UID(pod.Namespace, pod.Name)
	}
	corev1.SetObjectDefaults_Pod(pod)
}

// validate applies the API server's own rules for creating a pod, and the rules
// for ephemeral containers, which a manifest may have here.
func validate(r *report, pod *v1.Pod) {
	// Privileged containers are a matter of the manifest here and not of a
	// cluster's policy, as for the kubelet's static pods.
	capabilities.Setup(true, 0)
	internal := &core.Pod{}
	if err := corev1.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), internal, nil); err != nil {
		r.refuse(document.ClassInvalid, "", err.Error())
		return
	}
	ephemeral := internal.Spec.EphemeralContainers
	internal.Spec.EphemeralContainers = nil
	opts := podapi.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	errs := validation.ValidatePodCreate(internal, opts)
	if len(ephemeral) > 0 {
		errs = append(errs, validateEphemeral(internal, ephemeral, opts)...)
	}
	for _, err := range errs {
		if !r.follows(err) {
			r.refuse(document.ClassInvalid, err.Field, r.fieldDetail(err))
		}
	}
	validateIdentity(r, pod)
}

// validateEphemeral checks ephemeral containers as the API server does when they
// are added to a pod that runs. What it says of the rest has been said.
func validateEphemeral(pod *core.Pod, ephemeral []core.EphemeralContainer, opts validation.PodValidationOptions) field.ErrorList {
	with := pod.DeepCopy()
	with.ResourceVersion = "1"
	old := with.DeepCopy()
	with.Spec.EphemeralContainers = ephemeral
	errs := validation.ValidatePodEphemeralContainersUpdate(with, old, opts)
	return slices.DeleteFunc(errs, func(err *field.Error) bool { return !strings.HasPrefix(err.Field, "spec.ephemeralContainers") })
}

// validateIdentity checks what only matters to a pod without an API server: its
// name must be given, and what it names must be fit for paths.
func validateIdentity(r *report, pod *v1.Pod) {
	if pod.Name == "" && pod.GenerateName != "" {
		r.refuse(document.ClassInvalid, "metadata.generateName",
			"a name is needed: there is no API server here to complete it")
	}
	checkPodNames(r, pod)
}

// fieldDetail says what is wrong with a field and what is allowed. What may be a Secret's is
// not repeated.
func (r *report) fieldDetail(err *field.Error) string {
	if r.MayBeSecret() {
		err.BadValue = nil
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
	case field.ErrorTypeTooLong, field.ErrorTypeTooShort, field.ErrorTypeTooMany, field.ErrorTypeTooFew, field.ErrorTypeInternal:
	}
	return withDetail(strings.ToLower(string(err.Type)[:1])+string(err.Type)[1:], err.Detail)
}

func withDetail(text, detail string) string {
	if detail == "" {
		return text
	}
	return text + ": " + detail
}

// quoted writes a value that the API server names: what a pointer leads to, and never
// where that lies in memory.
func quoted(value any) string {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.String {
		return input.Quote(v.String())
	}
	if text, ok := value.(fmt.Stringer); ok && v.IsValid() && v.Kind() != reflect.Pointer {
		return input.Quote(text.String())
	}
	if text := fmt.Sprint(v); v.IsValid() && isPlain(v.Type()) && len(text) <= 60 {
		return text
	}
	return "the value"
}

// isPlain reports whether values of a type are printed the same each time, and are short.
func isPlain(t reflect.Type) bool {
	kind := t.Kind()
	if kind == reflect.Slice || kind == reflect.Array {
		return t.Elem().Kind() == reflect.String || isPlain(t.Elem())
	}
	return kind >= reflect.Bool && kind <= reflect.Float64
}

// mergeStringData puts a secret's stringData into its data, where it wins, as
// the API server does.
func mergeStringData(s *v1.Secret) {
	if len(s.StringData) == 0 {
		return
	}
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for _, key := range slices.Sorted(maps.Keys(s.StringData)) {
		s.Data[key] = []byte(s.StringData[key])
	}
	s.StringData = nil
}
