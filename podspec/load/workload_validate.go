package load

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	podapi "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	appsv1 "k8s.io/kubernetes/pkg/apis/apps/v1"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	batchv1 "k8s.io/kubernetes/pkg/apis/batch/v1"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
)

// validateWorkload fills in the defaults of an object that stands for pods, and applies the API server's own rules for
// creating it (the strategies of registry/apps and registry/batch).
func validateWorkload(o *object) {
	capabilities.Setup(true, 0)
	r, written := o.report, o.meta.Name
	o.meta.Name = completed(o.meta)
	if o.meta.UID == "" {
		o.meta.UID = podspec.WorkloadUID(r.Kind, o.meta.Namespace, o.meta.Name)
	}
	errs, err := createWorkload(o.workload)
	o.meta.Name = written
	if err != nil {
		r.refuse(document.ClassInvalid, "", err.Error())
	}
	for _, err := range errs {
		if !isNameCompleted(o.meta, err) && !r.follows(err) {
			r.refuse(document.ClassInvalid, err.Field, r.fieldDetail(err))
		}
	}
	checkNumbers(r, o.workload)
	checkGeneratedName(r, o.meta)
	r.checkName("metadata.name", o.meta.Name, podName)
	r.checkName("metadata.namespace", o.meta.Namespace, namespaceName)
	r.checkName("metadata.uid", string(o.meta.UID), podUID)
	// Only podctl makes Jobs of a CronJob.
	o.meta.OwnerReferences = nil
}

// maxPods is how many pods one workload can have. A kubelet runs 110 by default, and a record lists all.
const maxPods = 1000

// checkNumbers refuses workloads of more pods than one machine can have.
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
		numbers["spec.jobTemplate.spec.parallelism"], numbers["spec.jobTemplate.spec.completions"] = job.Parallelism, job.Completions
	}
	for path, number := range numbers {
		if number != nil && *number > maxPods {
			r.refuse(document.ClassUnsupported, path, fmt.Sprintf("%d pods are more than one machine can have; at most %d are taken", *number, maxPods))
		}
	}
}

// createWorkload fills in the defaults of a new object, and returns what the API server finds wrong with it.
func createWorkload(w *podspec.Workload) (field.ErrorList, error) {
	switch w.Kind() {
	case podspec.KindDeployment:
		return createDeployment(w)
	case podspec.KindReplicaSet:
		return createReplicaSet(w)
	case podspec.KindStatefulSet:
		return createStatefulSet(w)
	case podspec.KindDaemonSet:
		return createDaemonSet(w)
	case podspec.KindJob:
		return createJob(w)
	}
	return createCronJob(w)
}

func createDeployment(w *podspec.Workload) (field.ErrorList, error) {
	appsv1.SetObjectDefaults_Deployment(w.Deployment)
	internal := &apps.Deployment{}
	err := appsv1.Convert_v1_Deployment_To_apps_Deployment(w.Deployment.DeepCopy(), internal, nil)
	return appsvalidation.ValidateDeployment(internal, podapi.GetValidationOptionsFromPodTemplate(&internal.Spec.Template, nil)), err
}

func createReplicaSet(w *podspec.Workload) (field.ErrorList, error) {
	appsv1.SetObjectDefaults_ReplicaSet(w.ReplicaSet)
	internal := &apps.ReplicaSet{}
	err := appsv1.Convert_v1_ReplicaSet_To_apps_ReplicaSet(w.ReplicaSet.DeepCopy(), internal, nil)
	return appsvalidation.ValidateReplicaSet(internal, podapi.GetValidationOptionsFromPodTemplate(&internal.Spec.Template, nil)), err
}

func createStatefulSet(w *podspec.Workload) (field.ErrorList, error) {
	appsv1.SetObjectDefaults_StatefulSet(w.StatefulSet)
	internal := &apps.StatefulSet{}
	err := appsv1.Convert_v1_StatefulSet_To_apps_StatefulSet(w.StatefulSet.DeepCopy(), internal, nil)
	return appsvalidation.ValidateStatefulSet(internal, podapi.GetValidationOptionsFromPodTemplate(&internal.Spec.Template, nil)), err
}

func createDaemonSet(w *podspec.Workload) (field.ErrorList, error) {
	appsv1.SetObjectDefaults_DaemonSet(w.DaemonSet)
	internal := &apps.DaemonSet{}
	err := appsv1.Convert_v1_DaemonSet_To_apps_DaemonSet(w.DaemonSet.DeepCopy(), internal, nil)
	return appsvalidation.ValidateDaemonSet(internal, podapi.GetValidationOptionsFromPodTemplate(&internal.Spec.Template, nil)), err
}

func createCronJob(w *podspec.Workload) (field.ErrorList, error) {
	batchv1.SetObjectDefaults_CronJob(w.CronJob)
	internal := &batch.CronJob{}
	err := batchv1.Convert_v1_CronJob_To_batch_CronJob(w.CronJob.DeepCopy(), internal, nil)
	return batchvalidation.ValidateCronJobCreate(internal, podapi.GetValidationOptionsFromPodTemplate(&internal.Spec.JobTemplate.Spec.Template, nil)), err
}

// createJob also gives the Job the uid, the selector and the labels of pods that the API server gives a new one
// (jobStrategy.PrepareForCreate).
func createJob(w *podspec.Workload) (field.ErrorList, error) {
	batchv1.SetObjectDefaults_Job(w.Job)
	podspec.SelectJob(w.Job)
	internal := &batch.Job{}
	err := batchv1.Convert_v1_Job_To_batch_Job(w.Job.DeepCopy(), internal, nil)
	return batchvalidation.ValidateJob(internal, batchvalidation.JobValidationOptions{
		PodValidationOptions:  podapi.GetValidationOptionsFromPodTemplate(&internal.Spec.Template, nil),
		RequirePrefixedLabels: true,
	}), err
}
