package load

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podapi "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
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
