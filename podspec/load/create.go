package load

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apinames "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podapi "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/fieldpath"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/quote"
)

// setDefaults sets the API server's defaults (corev1.SetObjectDefaults_Pod), the changes of its conversion that affect
// a kubelet, and podctl's namespace and uid.
func setDefaults(pod *v1.Pod) {
	pod.APIVersion, pod.Kind = "v1", "Pod"
	if pod.Namespace == "" {
		pod.Namespace = v1.NamespaceDefault
	}
	if pod.UID == "" && pod.Name != "" {
		pod.UID = podspec.UID(pod.Namespace, pod.Name)
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = pod.Spec.DeprecatedServiceAccount
	}
	corev1.SetObjectDefaults_Pod(pod)
	if ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0) < 0 {
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	}
}

// FromAPI returns a pod of the API server, which has defaulted and validated it. It omits the status and managedFields,
// which need memory and are not wanted state, and sets apiVersion and kind, which only some responses contain. It
// accepts fields that podctl does not support: admission rejects the pod for them. The result shares the rest with pod,
// which must not change any more. The error reports a pod that is larger than a manifest may be, that has no uid or no
// containers, or that has a name that cannot be part of a path or is not unique.
func FromAPI(pod *v1.Pod) (*podspec.Desired, error) {
	kept := *pod
	kept.APIVersion, kept.Kind = "v1", podspec.KindPod
	kept.ManagedFields, kept.Status = nil, v1.PodStatus{}
	if err := checkFromAPI(&kept); err != nil {
		return nil, fmt.Errorf("pod %s of the API server: %w", quote.Value(pod.Namespace+"/"+pod.Name), err)
	}
	return podspec.NewFromCluster(&kept), nil
}

// checkFromAPI checks the size of a pod, and the names that become parts of paths and identify steps of a plan.
func checkFromAPI(pod *v1.Pod) error {
	switch {
	case pod.Size() > input.DefaultMaxBytes:
		return fmt.Errorf("it is larger than %d bytes", input.DefaultMaxBytes)
	case countEntries(reflect.ValueOf(pod), document.MaxValues) < 0:
		return fmt.Errorf("it has more than %d entries in lists and maps", document.MaxValues)
	case pod.UID == "":
		return errors.New("metadata.uid is missing")
	case len(pod.Spec.Containers) == 0:
		return errors.New("spec.containers: it has no containers")
	}
	names := []checkedName{
		{"metadata.namespace", pod.Namespace, namespaceName},
		{"metadata.name", pod.Name, objectName},
		{"metadata.uid", string(pod.UID), podUID},
	}
	for _, ref := range podspec.Containers(pod) {
		names = append(names, checkedName{ref.Path + ".name", ref.Name, apinames.IsDNS1123Label})
	}
	for i := range pod.Spec.Volumes {
		at := fieldpath.Index("spec.volumes", i) + ".name"
		names = append(names, checkedName{at, pod.Spec.Volumes[i].Name, apinames.IsDNS1123Label})
	}
	for _, one := range names {
		if wrong := one.rule(one.name); len(wrong) > 0 {
			return fmt.Errorf("%s: %s: %s", one.path, quote.Value(one.name), strings.Join(wrong, "; "))
		}
	}
	return checkTwins(pod)
}

// checkTwins refuses two containers, or two volumes, with the same name.
func checkTwins(pod *v1.Pod) error {
	containers, volumes := map[string]string{}, map[string]string{}
	for _, ref := range podspec.Containers(pod) {
		if first := containers[ref.Name]; first != "" {
			return fmt.Errorf("%s.name: %q is also the name of %s", ref.Path, ref.Name, first)
		}
		containers[ref.Name] = ref.Path
	}
	for i := range pod.Spec.Volumes {
		name, at := pod.Spec.Volumes[i].Name, fieldpath.Index("spec.volumes", i)
		if first := volumes[name]; first != "" {
			return fmt.Errorf("%s.name: %q is also the name of %s", at, name, first)
		}
		volumes[name] = at
	}
	return nil
}

// countEntries subtracts the entries of all lists and maps of an API type from a limit. It stops below zero. An entry
// of two bytes can take hundreds of bytes in memory.
func countEntries(v reflect.Value, left int) int {
	switch v.Kind() { //nolint:exhaustive // the other kinds have no entries
	case reflect.Pointer:
		if !v.IsNil() {
			return countEntries(v.Elem(), left)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && left >= 0; i++ {
			if v.Type().Field(i).IsExported() {
				left = countEntries(v.Field(i), left)
			}
		}
	case reflect.Slice:
		left -= v.Len()
		for i := 0; i < v.Len() && left >= 0; i++ {
			left = countEntries(v.Index(i), left)
		}
	case reflect.Map:
		left -= v.Len()
	}
	return left
}

// checkedName is a name in a pod with its path and its rule.
type checkedName struct {
	path, name string
	rule       func(string) []string
}

// Stored returns a pod as the API server would store it. It omits data that only that server knows: a uid that is not
// in the manifest, times and the status.
func Stored(d *podspec.Desired) (*v1.Pod, error) {
	internal, err := created(d.Pod)
	if err != nil {
		return nil, err
	}
	pod := &v1.Pod{}
	if err := corev1.Convert_core_Pod_To_v1_Pod(internal, pod, nil); err != nil {
		return nil, err
	}
	pod.TypeMeta, pod.UID, pod.Status = d.Pod.TypeMeta, d.WrittenUID, v1.PodStatus{}
	return pod, nil
}

// created returns a pod as the API server validates and stores it when it is created. It replaces
// podStrategy.PrepareForCreate, whose package would import the whole server. It keeps fields of features that are off
// in a cluster: podctl supports stopSignal, and reports the others.
func created(pod *v1.Pod) (*core.Pod, error) {
	internal := &core.Pod{}
	if err := corev1.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), internal, nil); err != nil {
		return nil, err
	}
	mergeLabelKeys(internal)
	appArmorFields(internal)
	return internal, nil
}

// mergeLabelKeys adds the labels that affinity terms and topology spread constraints name to their selectors (API
// server: mutatePodAffinity, mutateTopologySpreadConstraints).
func mergeLabelKeys(pod *core.Pod) {
	affinity := ptr.Deref(pod.Spec.Affinity, core.Affinity{})
	own := ptr.Deref(affinity.PodAffinity, core.PodAffinity{})
	anti := ptr.Deref(affinity.PodAntiAffinity, core.PodAntiAffinity{})
	terms := slices.Concat(
		own.RequiredDuringSchedulingIgnoredDuringExecution,
		anti.RequiredDuringSchedulingIgnoredDuringExecution)
	preferred := slices.Concat(
		own.PreferredDuringSchedulingIgnoredDuringExecution,
		anti.PreferredDuringSchedulingIgnoredDuringExecution)
	for _, p := range preferred {
		terms = append(terms, p.PodAffinityTerm)
	}
	for i := range terms {
		mergeKeys(terms[i].LabelSelector, terms[i].MatchLabelKeys, metav1.LabelSelectorOpIn, pod.Labels)
		mergeKeys(terms[i].LabelSelector, terms[i].MismatchLabelKeys, metav1.LabelSelectorOpNotIn, pod.Labels)
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		mergeKeys(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn, pod.Labels)
	}
}

// mergeKeys adds the pod's labels with these keys to a selector. A nil selector selects nothing and stays nil.
func mergeKeys(
	selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator, labels map[string]string,
) {
	if selector == nil {
		return
	}
	for _, key := range keys {
		if value, ok := labels[key]; ok {
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
		}
	}
}

// appArmorFields copies the profiles in annotations to the fields of containers that have none (API server:
// applyAppArmorVersionSkew).
func appArmorFields(pod *core.Pod) {
	if pod.Spec.OS != nil && pod.Spec.OS.Name == core.Windows {
		return
	}
	var ofPod *core.AppArmorProfile
	if pod.Spec.SecurityContext != nil {
		ofPod = pod.Spec.SecurityContext.AppArmorProfile
	}
	podapi.VisitContainers(&pod.Spec, podapi.AllContainers, func(c *core.Container, _ podapi.ContainerType) bool {
		profile := annotatedProfile(pod, c)
		if profile == nil || equality.Semantic.DeepEqual(profile, ofPod) {
			return true
		}
		if c.SecurityContext == nil {
			c.SecurityContext = &core.SecurityContext{}
		}
		if c.SecurityContext.AppArmorProfile == nil {
			c.SecurityContext.AppArmorProfile = profile
		}
		return true
	})
}

// annotatedProfile returns the profile from a container's annotation, or nil without a valid one.
func annotatedProfile(pod *core.Pod, c *core.Container) *core.AppArmorProfile {
	annotation, ok := pod.Annotations[core.DeprecatedAppArmorAnnotationKeyPrefix+c.Name]
	if !ok {
		return nil
	}
	profile := podapi.ApparmorFieldForAnnotation(annotation)
	if len(validation.ValidateAppArmorProfileField(profile, &field.Path{})) > 0 {
		return nil
	}
	return profile
}

// completed returns the name that the API server gives an object with generateName (names.SimpleNameGenerator), with
// fixed instead of random letters at its end.
func completed(meta *metav1.ObjectMeta) string {
	if meta.Name != "" || meta.GenerateName == "" {
		return meta.Name
	}
	const letters = "xxxxx"
	return meta.GenerateName[:min(len(meta.GenerateName), 63-len(letters))] + letters
}

// isNameGenerated reports whether an object has only generateName, which is a separate problem.
func isNameGenerated(meta *metav1.ObjectMeta) bool { return meta.Name == "" && meta.GenerateName != "" }

// isNameCompleted reports whether an error is about a generated name.
func isNameCompleted(meta *metav1.ObjectMeta, err *field.Error) bool {
	return isNameGenerated(meta) && strings.HasPrefix(err.Field, "metadata.name")
}
