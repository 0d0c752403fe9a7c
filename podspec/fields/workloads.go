package fields

import "slices"

// Workload is the table of the fields of a workload of a kind, without those of its template: they are a Pod's. It is
// empty for a kind that is none.
func Workload(kind string) []Field {
	specific := map[string][]Field{
		"Deployment": deploymentFields(), "ReplicaSet": replicaSetFields(), "StatefulSet": statefulSetFields(),
		"DaemonSet": daemonSetFields(), "Job": jobFields(), "CronJob": cronJobFields(),
	}[kind]
	if specific == nil {
		return nil
	}
	const server = "Belongs to the API server; there is none here."
	template := "spec.template"
	if kind == "CronJob" {
		template = "spec.jobTemplate.spec.template"
	}
	return slices.Concat(specific, []Field{
		{Path: "apiVersion", Support: Honoured},
		{Path: "kind", Support: Honoured},
		{Path: "metadata.name", Support: Honoured},
		{Path: "metadata.generateName", Support: NoEffect, Note: "Names are completed by an API server; give metadata.name."},
		{Path: "metadata.namespace", Support: Honoured},
		{Path: "metadata.uid", Support: Honoured},
		{Path: "metadata.labels", Support: Honoured},
		{Path: "metadata.annotations", Support: Honoured},
		{Path: "metadata", Support: NoEffect, Note: server},
		{Path: template, Support: Honoured, Note: "As the fields of a Pod."},
		{Path: template + ".metadata.name", Support: NoEffect, Note: "Pods are named after their workload."},
		{Path: template + ".metadata.namespace", Support: NoEffect, Note: "Pods are in the namespace of their workload."},
		{Path: "status", Support: NoEffect, Note: "The status is what podctl reports, not what it is given."},
	})
}

// honoured are rows of fields that are honoured without more to say.
func honoured(paths ...string) []Field {
	rows := make([]Field, 0, len(paths))
	for _, path := range paths {
		rows = append(rows, Field{Path: path, Support: Honoured})
	}
	return rows
}

func deploymentFields() []Field {
	return append(honoured("spec.replicas", "spec.selector", "spec.strategy", "spec.minReadySeconds", "spec.revisionHistoryLimit", "spec.paused"),
		Field{Path: "spec.progressDeadlineSeconds", Support: NoEffect, Note: "A wait for a rollout ends with --timeout."})
}

func replicaSetFields() []Field {
	return honoured("spec.replicas", "spec.selector", "spec.minReadySeconds")
}

func statefulSetFields() []Field {
	return append(honoured("spec.replicas", "spec.selector", "spec.podManagementPolicy", "spec.updateStrategy", "spec.minReadySeconds",
		"spec.revisionHistoryLimit", "spec.ordinals", "spec.volumeClaimTemplates.metadata.name", "spec.volumeClaimTemplates.apiVersion", "spec.volumeClaimTemplates.kind"),
		Field{Path: "spec.serviceName", Support: Honoured, Note: "As the subdomain of the pods."},
		Field{Path: "spec.volumeClaimTemplates", Support: NoEffect, Note: "A claim is a directory of podctl's own: its size, class and access modes have no effect."},
		Field{Path: "spec.persistentVolumeClaimRetentionPolicy", Support: NoEffect, Note: "Data of claims stays until `podctl delete --volumes` or `podctl prune --volumes`."})
}

func daemonSetFields() []Field {
	return append(honoured("spec.selector", "spec.minReadySeconds", "spec.revisionHistoryLimit", "spec.updateStrategy.type"),
		Field{Path: "spec.updateStrategy", Support: NoEffect, Note: "Here is one machine, which has one pod of it."})
}

func jobFields() []Field {
	return append(honoured("spec.parallelism", "spec.completions", "spec.activeDeadlineSeconds", "spec.podFailurePolicy", "spec.successPolicy", "spec.backoffLimit",
		"spec.backoffLimitPerIndex", "spec.maxFailedIndexes", "spec.selector", "spec.manualSelector", "spec.ttlSecondsAfterFinished", "spec.completionMode", "spec.suspend"),
		Field{Path: "spec.podReplacementPolicy", Support: NoEffect, Note: "A try begins once the pod before it has ended."},
		Field{Path: "spec.managedBy", Support: Refused, Note: "Another controller would run it; there is none here."})
}

func cronJobFields() []Field {
	rows := honoured("spec.schedule", "spec.timeZone", "spec.startingDeadlineSeconds", "spec.concurrencyPolicy", "spec.suspend",
		"spec.successfulJobsHistoryLimit", "spec.failedJobsHistoryLimit", "spec.jobTemplate.metadata.labels", "spec.jobTemplate.metadata.annotations")
	rows = append(rows, Field{Path: "spec.jobTemplate.metadata", Support: NoEffect, Note: "Jobs are named after their CronJob and the time of their run."})
	for _, f := range jobFields() {
		f.Path = "spec.jobTemplate." + f.Path
		rows = append(rows, f)
	}
	return rows
}
