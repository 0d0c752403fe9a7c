package fields

import (
	"slices"
	"strings"
)

// Kind returns the table of a kind's fields, without those of a pod template, which are a Pod's. It is empty for a kind
// whose fields are all supported.
func Kind(kind string) []Field {
	if kind == "Service" {
		return slices.Concat(serviceFields(), objectFields())
	}
	specific := map[string][]Field{
		"Deployment": deploymentFields(), "ReplicaSet": replicaSetFields(), "StatefulSet": statefulSetFields(),
		"DaemonSet": daemonSetFields(), "Job": jobFields(), "CronJob": cronJobFields(),
	}[kind]
	if specific == nil {
		return nil
	}
	template := "spec.template"
	if kind == "CronJob" {
		template = "spec.jobTemplate.spec.template"
	}
	return slices.Concat(specific, objectFields(), []Field{
		{Path: template, Support: Honoured, Note: "Like the fields of a Pod."},
		{Path: template + ".metadata.name", Support: NoEffect, Note: "Pods are named after their workload."},
		row(template+".metadata.namespace", NoEffect, "Pods are in the namespace of their workload."),
	})
}

// objectFields returns the fields that every kind has, without classes of change.
func objectFields() []Field {
	rows := metadataFields()
	for i := range rows {
		rows[i].Change = ""
	}
	return rows
}

// RequiredNodeAffinity is the field with which a pod requires nodes.
const RequiredNodeAffinity = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"

// ChoosesNodes reports whether a field in the template of a DaemonSet selects the nodes for its pods. For other pods
// the field has no effect.
func ChoosesNodes(path string) bool {
	return strings.HasPrefix(path, "spec.nodeSelector") || strings.HasPrefix(path, RequiredNodeAffinity)
}

// honoured returns rows for fields that are supported without limits.
func honoured(paths ...string) []Field {
	rows := make([]Field, 0, len(paths))
	for _, path := range paths {
		rows = append(rows, Field{Path: path, Support: Honoured})
	}
	return rows
}

func row(path string, support Support, note string) Field {
	return Field{Path: path, Support: support, Note: note}
}

func deploymentFields() []Field {
	supported := honoured("spec.replicas", "spec.selector", "spec.strategy", "spec.minReadySeconds",
		"spec.revisionHistoryLimit", "spec.paused")
	return append(supported,
		row("spec.progressDeadlineSeconds", NoEffect, "A wait for a rollout ends with --timeout."))
}

func replicaSetFields() []Field {
	return honoured("spec.replicas", "spec.selector", "spec.minReadySeconds")
}

func statefulSetFields() []Field {
	supported := honoured("spec.replicas", "spec.selector", "spec.podManagementPolicy", "spec.updateStrategy",
		"spec.minReadySeconds", "spec.revisionHistoryLimit", "spec.ordinals", "spec.volumeClaimTemplates.metadata.name",
		"spec.volumeClaimTemplates.apiVersion", "spec.volumeClaimTemplates.kind")
	return append(supported,
		row("spec.serviceName", Honoured, "Used as the subdomain of the pods."),
		row("spec.volumeClaimTemplates", NoEffect,
			"A claim is a directory that podctl creates: its size, class and access modes have no effect."),
		row("spec.persistentVolumeClaimRetentionPolicy", NoEffect,
			"Data of claims stays until `podctl delete --volumes` or `podctl prune --volumes`."))
}

func daemonSetFields() []Field {
	supported := honoured("spec.selector", "spec.minReadySeconds", "spec.revisionHistoryLimit",
		"spec.updateStrategy.type")
	return append(supported,
		row("spec.template.spec.nodeSelector", Honoured, "A machine without these labels does not run the pod."),
		row("spec.template."+RequiredNodeAffinity, Honoured, "A machine without such labels does not run the pod."),
		row("spec.updateStrategy", NoEffect, "podctl has one machine, which runs one pod of the DaemonSet."))
}

func jobFields() []Field {
	supported := honoured("spec.parallelism", "spec.completions", "spec.activeDeadlineSeconds", "spec.podFailurePolicy",
		"spec.successPolicy", "spec.backoffLimit", "spec.backoffLimitPerIndex", "spec.maxFailedIndexes",
		"spec.selector", "spec.manualSelector", "spec.ttlSecondsAfterFinished", "spec.completionMode", "spec.suspend")
	return append(supported,
		row("spec.podReplacementPolicy", NoEffect, "A retry starts once the previous pod has ended."),
		row("spec.managedBy", Refused, "Another controller would manage the Job, and podctl has none."))
}

func cronJobFields() []Field {
	rows := honoured("spec.schedule", "spec.timeZone", "spec.startingDeadlineSeconds", "spec.concurrencyPolicy",
		"spec.suspend", "spec.successfulJobsHistoryLimit", "spec.failedJobsHistoryLimit",
		"spec.jobTemplate.metadata.labels", "spec.jobTemplate.metadata.annotations")
	rows = append(rows, row("spec.jobTemplate.metadata", NoEffect,
		"Jobs are named after their CronJob and the time of their run."))
	for _, f := range jobFields() {
		f.Path = "spec.jobTemplate." + f.Path
		rows = append(rows, f)
	}
	return rows
}

func serviceFields() []Field {
	const outside = "There is one node, and clients from outside keep their addresses."
	supported := honoured("spec.selector", "spec.type", "spec.ports", "spec.publishNotReadyAddresses",
		"spec.allocateLoadBalancerNodePorts", "spec.ipFamilies", "spec.ipFamilyPolicy")
	return append(supported,
		row("spec.clusterIP", Honoured, "None, or an address of podctl's range."),
		row("spec.clusterIPs", Honoured, "Like clusterIP, one for each IP family."),
		row("spec.ports.nodePort", Honoured, "30000 to 32767."),
		row("spec.ports.appProtocol", NoEffect, "podctl does not inspect traffic."),
		row("spec.sessionAffinity", Honoured, "A client keeps its pod while the set of ready pods stays the same."),
		row("spec.sessionAffinityConfig", NoEffect,
			"A client keeps its pod while the set of ready pods stays the same."),
		row("spec.externalTrafficPolicy", NoEffect, outside),
		row("spec.internalTrafficPolicy", NoEffect, outside),
		row("spec.healthCheckNodePort", NoEffect, outside),
		row("spec.trafficDistribution", NoEffect, outside),
		row("spec.loadBalancerIP", NoEffect, "Services use only the node's own addresses."),
		row("spec.loadBalancerClass", NoEffect, "Services use only the node's own addresses."),
		row("spec.loadBalancerSourceRanges", Refused,
			"podctl does not filter clients, and the port would be open to all."),
		row("spec.externalIPs", Refused, "podctl accepts traffic only on the node's own addresses."),
		row("spec.externalName", NoEffect,
			"Pods find Services in their hosts files, which cannot map one name to another."))
}
