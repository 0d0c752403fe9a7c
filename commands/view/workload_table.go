package view

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/workload"
)

// WorkloadRow is a workload with its current expansion.
type WorkloadRow struct {
	Record    *controller.Record
	Expansion *workload.Expansion
}

// Workloads returns a table of workloads. They must be of one kind, and there must be at least one.
func (v *Lists) Workloads(all []WorkloadRow) (header []string, rows []Row) {
	columns := workloadColumns(all[0].Record.Workload.Kind())
	header = slices.Concat([]string{"NAME"}, columns, []string{"AGE"}, v.wide("CONTAINERS", "IMAGES"))
	for i := range all {
		r := &all[i]
		meta := r.Record.Workload.Meta()
		rows = append(rows, v.row(meta, func(row *Row) {
			row.Add(meta.Name)
			row.Add(v.workloadCells(r)...)
			row.Add(v.since(r.Record.CreatedAt))
			template, _ := r.Record.Workload.PodTemplate()
			row.Add(v.wide(ContainersOf(template))...)
		}))
	}
	return v.header(header...), rows
}

func workloadColumns(kind string) []string {
	switch kind {
	case podspec.KindStatefulSet:
		return []string{"READY"}
	case podspec.KindDaemonSet, podspec.KindReplicaSet:
		return []string{"DESIRED", "CURRENT", "READY"}
	case podspec.KindJob:
		return []string{"STATUS", "COMPLETIONS"}
	case podspec.KindCronJob:
		return []string{"SCHEDULE", "SUSPEND", "LAST SCHEDULE"}
	}
	return []string{"READY", "UP-TO-DATE", "AVAILABLE"}
}

func (v *Lists) workloadCells(r *WorkloadRow) []string {
	w, s := r.Record.Workload, &r.Expansion.Status
	ready := fmt.Sprintf("%d/%d", s.Ready, s.Desired)
	switch w.Kind() {
	case podspec.KindStatefulSet:
		return []string{ready}
	case podspec.KindDaemonSet, podspec.KindReplicaSet:
		return []string{fmt.Sprint(s.Desired), fmt.Sprint(s.Current), fmt.Sprint(s.Ready)}
	case podspec.KindJob:
		job := r.Expansion.Job
		completions := fmt.Sprintf("%d/%d", job.Succeeded, ptr.Deref(w.Job.Spec.Completions, 1))
		return []string{jobState(w.Job, job), completions}
	case podspec.KindCronJob:
		last := table.NoValue
		if r.Record.Cron != nil {
			last = v.since(r.Record.Cron.Last)
		}
		return []string{w.CronJob.Spec.Schedule, fmt.Sprint(ptr.Deref(w.CronJob.Spec.Suspend, false)), last}
	}
	return []string{ready, fmt.Sprint(s.Updated), fmt.Sprint(s.Available)}
}

// jobState describes the state of a Job in one word (printJob of kubectl).
func jobState(job *batchv1.Job, status *batchv1.JobStatus) string {
	if end := workload.JobEnd(status); end != nil {
		return string(end.Type)
	}
	if ptr.Deref(job.Spec.Suspend, false) {
		return string(batchv1.JobSuspended)
	}
	return "Running"
}

// ContainersOf returns the names and the images of a template's containers, separated by commas.
func ContainersOf(template *v1.PodTemplateSpec) (names, images string) {
	var n, i []string
	for c := range template.Spec.Containers {
		n, i = append(n, template.Spec.Containers[c].Name), append(i, template.Spec.Containers[c].Image)
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// WorkloadDocument returns a workload as kubectl prints it, with the status that a cluster would report.
func WorkloadDocument(r *WorkloadRow) any {
	w, s := r.Record.Workload, &r.Expansion.Status
	// there are not that many pods
	desired, current, updated := int32(s.Desired), int32(s.Current), int32(s.Updated)
	ready, available := int32(s.Ready), int32(s.Available) // as above
	switch w.Kind() {
	case podspec.KindDeployment:
		d := w.Deployment.DeepCopy()
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas = current, updated, ready
		d.Status.AvailableReplicas, d.Status.UnavailableReplicas = available, max(desired-available, 0)
		d.Status.Conditions = deploymentConditions(d, s)
		return d
	case podspec.KindReplicaSet:
		d := w.ReplicaSet.DeepCopy()
		d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = current, ready, available
		return d
	case podspec.KindStatefulSet:
		d := w.StatefulSet.DeepCopy()
		d.Status.Replicas, d.Status.CurrentReplicas, d.Status.UpdatedReplicas = current, current-updated, updated
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = ready, available
		return d
	case podspec.KindDaemonSet:
		d := w.DaemonSet.DeepCopy()
		d.Status.DesiredNumberScheduled, d.Status.CurrentNumberScheduled = desired, current
		d.Status.UpdatedNumberScheduled, d.Status.NumberReady = updated, ready
		d.Status.NumberAvailable, d.Status.NumberUnavailable = available, max(desired-available, 0)
		return d
	case podspec.KindJob:
		d := w.Job.DeepCopy()
		d.Status = *r.Expansion.Job
		return d
	}
	d := w.CronJob.DeepCopy()
	if r.Record.Cron != nil {
		d.Status.LastScheduleTime = &metav1.Time{Time: r.Record.Cron.Last}
	}
	return d
}

// deploymentConditions returns the conditions that a cluster's controller would set for a Deployment.
func deploymentConditions(d *appsv1.Deployment, s *workload.Status) []appsv1.DeploymentCondition {
	available := appsv1.DeploymentCondition{
		Type:    appsv1.DeploymentAvailable,
		Status:  v1.ConditionTrue,
		Reason:  "MinimumReplicasAvailable",
		Message: "Deployment has minimum availability.",
	}
	if s.Available < workload.MinimumAvailable(d) {
		available.Status = v1.ConditionFalse
		available.Reason = "MinimumReplicasUnavailable"
		available.Message = "Deployment does not have minimum availability."
	}
	progressing := appsv1.DeploymentCondition{
		Type:    appsv1.DeploymentProgressing,
		Status:  v1.ConditionTrue,
		Reason:  "ReplicaSetUpdated",
		Message: "Pods are missing, of an older version or not available.",
	}
	if s.Complete() {
		progressing.Reason = "NewReplicaSetAvailable"
		progressing.Message = "All pods have the newest version and are available."
	}
	return []appsv1.DeploymentCondition{available, progressing}
}
