package load

import (
	"fmt"

	v1batch "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podapi "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	appsv1 "k8s.io/kubernetes/pkg/apis/apps/v1"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	batchv1 "k8s.io/kubernetes/pkg/apis/batch/v1"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
)

// validateWorkload sets the defaults of a workload and applies the API server's rules for creating it (the strategies
// of registry/apps and registry/batch).
func validateWorkload(o *object) {
	capabilities.Setup(true, 0)
	r := o.report
	if o.meta.UID == "" {
		o.meta.UID = podspec.WorkloadUID(r.Kind, o.meta.Namespace, completed(o.meta))
	}
	o.refuseErrors(o.createErrors())
	checkNumbers(r, o.workload)
	r.checkName("metadata.name", o.meta.Name, objectName)
	r.checkName("metadata.namespace", o.meta.Namespace, namespaceName)
	r.checkName("metadata.uid", string(o.meta.UID), podUID)
	// Only podctl creates Jobs of a CronJob.
	o.meta.OwnerReferences = nil
}

// maxPods limits the pods of one workload. A kubelet runs 110 by default, and a record lists all of them.
const maxPods = 1000

// checkNumbers refuses workloads with more pods than maxPods.
func checkNumbers(r *report, w *podspec.Workload) {
	numbers := map[string]*int32{}
	switch w.Kind() {
	case podspec.KindDeployment:
		numbers["spec.replicas"] = w.Deployment.Spec.Replicas
	case podspec.KindReplicaSet:
		numbers["spec.replicas"] = w.ReplicaSet.Spec.Replicas
	case podspec.KindStatefulSet:
		numbers["spec.replicas"] = w.StatefulSet.Spec.Replicas
	case podspec.KindJob:
		numbers["spec.parallelism"], numbers["spec.completions"] = w.Job.Spec.Parallelism, w.Job.Spec.Completions
	case podspec.KindCronJob:
		job := &w.CronJob.Spec.JobTemplate.Spec
		numbers["spec.jobTemplate.spec.parallelism"] = job.Parallelism
		numbers["spec.jobTemplate.spec.completions"] = job.Completions
	}
	for path, number := range numbers {
		if number != nil && *number > maxPods {
			r.refuse(document.ClassUnsupported, path, fmt.Sprintf(
				"%d pods are more than one machine can run; at most %d are accepted", *number, maxPods))
		}
	}
}

// workloadErrors sets the defaults of a new workload and returns the API server's errors about it. It also gives a Job
// the uid, selector and labels that the API server would set (jobStrategy.PrepareForCreate).
func workloadErrors(w *podspec.Workload) (field.ErrorList, error) {
	options := func(t *core.PodTemplateSpec) validation.PodValidationOptions {
		return podapi.GetValidationOptionsFromPodTemplate(t, nil)
	}
	switch w.Kind() {
	case podspec.KindDeployment:
		return validated(w.Deployment, appsv1.SetObjectDefaults_Deployment,
			appsv1.Convert_v1_Deployment_To_apps_Deployment,
			func(d *apps.Deployment) field.ErrorList {
				return appsvalidation.ValidateDeployment(d, options(&d.Spec.Template))
			})
	case podspec.KindReplicaSet:
		return validated(w.ReplicaSet, appsv1.SetObjectDefaults_ReplicaSet,
			appsv1.Convert_v1_ReplicaSet_To_apps_ReplicaSet,
			func(s *apps.ReplicaSet) field.ErrorList {
				return appsvalidation.ValidateReplicaSet(s, options(&s.Spec.Template))
			})
	case podspec.KindStatefulSet:
		return validated(w.StatefulSet, appsv1.SetObjectDefaults_StatefulSet,
			appsv1.Convert_v1_StatefulSet_To_apps_StatefulSet,
			func(s *apps.StatefulSet) field.ErrorList {
				return appsvalidation.ValidateStatefulSet(s, options(&s.Spec.Template))
			})
	case podspec.KindDaemonSet:
		return validated(w.DaemonSet, appsv1.SetObjectDefaults_DaemonSet, appsv1.Convert_v1_DaemonSet_To_apps_DaemonSet,
			func(s *apps.DaemonSet) field.ErrorList {
				return appsvalidation.ValidateDaemonSet(s, options(&s.Spec.Template))
			})
	case podspec.KindJob:
		return validated(w.Job, completeJob, batchv1.Convert_v1_Job_To_batch_Job,
			func(j *batch.Job) field.ErrorList {
				return batchvalidation.ValidateJob(j, batchvalidation.JobValidationOptions{
					PodValidationOptions:  options(&j.Spec.Template),
					RequirePrefixedLabels: true,
				})
			})
	}
	return validated(w.CronJob, batchv1.SetObjectDefaults_CronJob, batchv1.Convert_v1_CronJob_To_batch_CronJob,
		func(c *batch.CronJob) field.ErrorList {
			return batchvalidation.ValidateCronJobCreate(c, options(&c.Spec.JobTemplate.Spec.Template))
		})
}

// completeJob sets the defaults of a Job and the selector of its pods.
func completeJob(j *v1batch.Job) {
	batchv1.SetObjectDefaults_Job(j)
	podspec.SelectJob(j)
}
