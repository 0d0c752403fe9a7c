package podspec

import (
	"fmt"

	"github.com/google/uuid"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Workload is an object that creates pods. Exactly one kind is set, with the API server's defaults.
type Workload struct {
	Deployment  *appsv1.Deployment  `json:"deployment,omitempty"`
	ReplicaSet  *appsv1.ReplicaSet  `json:"replicaSet,omitempty"`
	StatefulSet *appsv1.StatefulSet `json:"statefulSet,omitempty"`
	DaemonSet   *appsv1.DaemonSet   `json:"daemonSet,omitempty"`
	Job         *batchv1.Job        `json:"job,omitempty"`
	CronJob     *batchv1.CronJob    `json:"cronJob,omitempty"`
	// Template is the pod from the template with the name of the workload's first pod, including the objects it refers
	// to.
	Template *Desired `json:"template"`
	Origin
}

// Kinds of workloads.
const (
	KindDeployment  = "Deployment"
	KindReplicaSet  = "ReplicaSet"
	KindStatefulSet = "StatefulSet"
	KindDaemonSet   = "DaemonSet"
	KindJob         = "Job"
	KindCronJob     = "CronJob"
)

// DeepCopy returns a copy that shares only the pod of its template, which no longer changes.
func (w *Workload) DeepCopy() *Workload {
	other := *w
	other.Deployment = w.Deployment.DeepCopy()
	other.ReplicaSet = w.ReplicaSet.DeepCopy()
	other.StatefulSet = w.StatefulSet.DeepCopy()
	other.DaemonSet = w.DaemonSet.DeepCopy()
	other.Job = w.Job.DeepCopy()
	other.CronJob = w.CronJob.DeepCopy()
	return &other
}

// NewWorkload returns an empty workload of a kind, or nil for a kind that is no workload.
func NewWorkload(kind string) *Workload {
	switch kind {
	case KindDeployment:
		return &Workload{Deployment: &appsv1.Deployment{}}
	case KindReplicaSet:
		return &Workload{ReplicaSet: &appsv1.ReplicaSet{}}
	case KindStatefulSet:
		return &Workload{StatefulSet: &appsv1.StatefulSet{}}
	case KindDaemonSet:
		return &Workload{DaemonSet: &appsv1.DaemonSet{}}
	case KindJob:
		return &Workload{Job: &batchv1.Job{}}
	case KindCronJob:
		return &Workload{CronJob: &batchv1.CronJob{}}
	}
	return nil
}

// API returns the object that is set.
func (w *Workload) API() API {
	switch {
	case w.Deployment != nil:
		return w.Deployment
	case w.ReplicaSet != nil:
		return w.ReplicaSet
	case w.StatefulSet != nil:
		return w.StatefulSet
	case w.DaemonSet != nil:
		return w.DaemonSet
	case w.Job != nil:
		return w.Job
	}
	return w.CronJob
}

// Kind returns the kind that is set.
func (w *Workload) Kind() string { return kindOf(w.API()) }

// Meta returns the metadata of the object.
func (w *Workload) Meta() *metav1.ObjectMeta { return MetaOf(w.API()) }

// PodTemplate returns the template of the workload's pods, and its field path in the object.
func (w *Workload) PodTemplate() (template *v1.PodTemplateSpec, path string) {
	const at = "spec.template"
	switch w.Kind() {
	case KindDeployment:
		return &w.Deployment.Spec.Template, at
	case KindReplicaSet:
		return &w.ReplicaSet.Spec.Template, at
	case KindStatefulSet:
		return &w.StatefulSet.Spec.Template, at
	case KindDaemonSet:
		return &w.DaemonSet.Spec.Template, at
	case KindJob:
		return &w.Job.Spec.Template, at
	}
	return &w.CronJob.Spec.JobTemplate.Spec.Template, "spec.jobTemplate.spec.template"
}

// String returns kind and name in the API server's form: Deployment default/web.
func (w *Workload) String() string {
	return fmt.Sprintf("%s %s/%s", w.Kind(), w.Meta().Namespace, w.Meta().Name)
}

// WorkloadUID returns the uid of a workload whose manifest has none: a UUIDv5 of its kind, namespace and name.
func WorkloadUID(kind, namespace, name string) types.UID {
	return types.UID(uuid.NewSHA1(uuid.MustParse(uidSpace), []byte(kind+"/"+namespace+"/"+name)).String())
}

// FirstPod returns the name of the first pod of a workload.
func (w *Workload) FirstPod() string {
	name, first := w.Meta().Name, 0
	switch {
	case w.StatefulSet != nil && w.StatefulSet.Spec.Ordinals != nil:
		first = int(w.StatefulSet.Spec.Ordinals.Start)
	case w.CronJob != nil:
		// The name of a Job has its start time in minutes since 1970 (getJobName of the CronJob controller).
		name += "-00000000"
	}
	return fmt.Sprintf("%s-%d", name, first)
}

// SelectJob sets the selector of a Job and the labels of its pods, as the API server does for a new one
// (generateSelectorIfNeeded).
func SelectJob(job *batchv1.Job) {
	if job.Spec.ManualSelector != nil && *job.Spec.ManualSelector {
		return
	}
	uid := string(job.UID)
	if job.Spec.Template.Labels == nil {
		job.Spec.Template.Labels = map[string]string{}
	}
	for label, value := range map[string]string{
		legacyJobName:              job.Name,
		batchv1.JobNameLabel:       job.Name,
		legacyControllerUID:        uid,
		batchv1.ControllerUidLabel: uid,
	} {
		if _, given := job.Spec.Template.Labels[label]; !given {
			job.Spec.Template.Labels[label] = value
		}
	}
	if job.Spec.Selector == nil {
		job.Spec.Selector = &metav1.LabelSelector{}
	}
	if job.Spec.Selector.MatchLabels == nil {
		job.Spec.Selector.MatchLabels = map[string]string{}
	}
	if _, given := job.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; !given {
		job.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = uid
	}
}

// Older labels of a Job's pods, without a prefix.
const (
	legacyJobName       = "job-name"
	legacyControllerUID = "controller-uid"
)

// MountClaims adds the volumes of a StatefulSet's claims to one of its pods and replaces volumes with the same names
// (updateStorage of the StatefulSet controller). Pods of other workloads have none.
func (w *Workload) MountClaims(pod *v1.Pod) {
	if w.StatefulSet == nil {
		return
	}
	claims := map[string]bool{}
	var volumes []v1.Volume
	for i := range w.StatefulSet.Spec.VolumeClaimTemplates {
		name := w.StatefulSet.Spec.VolumeClaimTemplates[i].Name
		claims[name] = true
		volumes = append(volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-" + pod.Name},
		}})
	}
	for i := range pod.Spec.Volumes {
		if !claims[pod.Spec.Volumes[i].Name] {
			volumes = append(volumes, pod.Spec.Volumes[i])
		}
	}
	pod.Spec.Volumes = volumes
}
