package podspec

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationRestartedAt is the annotation in a workload's template with the time of the last restart request (kubectl
// rollout restart).
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// KeepRestart keeps a restart request when a workload is applied again and its manifest has none: kubectl apply removes
// only fields from an earlier manifest.
func (w *Workload) KeepRestart(before *Workload) {
	earlier, _ := before.PodTemplate()
	at, asked := earlier.Annotations[AnnotationRestartedAt]
	template, _ := w.PodTemplate()
	if _, given := template.Annotations[AnnotationRestartedAt]; asked && !given {
		w.Restart(at)
	}
}

// Restart requests a restart of a workload's pods, with a time in RFC 3339.
func (w *Workload) Restart(at string) {
	template, _ := w.PodTemplate()
	template.Annotations = maps.Clone(template.Annotations)
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, AnnotationRestartedAt, at)
	pod := w.Template.Pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnotationRestartedAt, at)
	w.Template = w.Template.WithPod(pod)
}
