package podspec

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationRestartedAt is when somebody asked to restart the pods of a workload, in its template (kubectl rollout restart).
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// RestartedAt is when somebody asked to restart a pod of a workload. It is zero if nobody has, if the annotation has no time,
// and for a pod that no Deployment, ReplicaSet, StatefulSet or DaemonSet controls: in a cluster the annotation restarts
// nothing by itself, a new version of a template does.
func RestartedAt(pod *v1.Pod) time.Time {
	text, given := pod.Annotations[AnnotationRestartedAt]
	if !given {
		return time.Time{}
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return time.Time{}
	}
	switch owner.Kind {
	case KindDeployment, KindReplicaSet, KindStatefulSet, KindDaemonSet:
		at, _ := time.Parse(time.RFC3339, text) // Without a time it is zero.
		return at
	}
	return time.Time{}
}

// KeepRestart lets a workload that is applied anew keep the restart that somebody asked for since, if its manifest says
// nothing of one: kubectl apply takes away only what an earlier manifest had.
func (w *Workload) KeepRestart(before *Workload) {
	earlier, _ := before.PodTemplate()
	at, asked := earlier.Annotations[AnnotationRestartedAt]
	template, _ := w.PodTemplate()
	if _, given := template.Annotations[AnnotationRestartedAt]; asked && !given {
		w.Restart(at)
	}
}

// Restart asks to restart the pods of a workload, at a time in RFC 3339.
func (w *Workload) Restart(at string) {
	template, _ := w.PodTemplate()
	template.Annotations = maps.Clone(template.Annotations)
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, AnnotationRestartedAt, at)
	pod := w.Template.Pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnotationRestartedAt, at)
	w.Template = w.Template.WithPod(pod)
}
