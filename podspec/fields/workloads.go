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
		{
			Path: template + ".metadata.namespace", Support: NoEffect,
			Note: "Pods are in the namespace of their workload.",
		},
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

func deploymentFields() []Field {
	supported := honoured("spec.replicas", "spec.selector", "spec.strategy", "spec.minReadySeconds",
		"spec.revisionHistoryLimit", "spec.paused")
	return append(supported,
		Field{
			Path: "spec.progressDeadlineSeconds", Support: NoEffect,
			Note: "A wait for a rollout ends with --timeout.",
		})
}

func replicaSetFields() []Field {
	return honoured("spec.replicas", "spec.selector", "spec.minReadySeconds")
}

func statefulSetFields() []Field {
	supported := honoured("spec.replicas", "spec.selector", "spec.podManagementPolicy", "spec.updateStrategy",
		"spec.minReadySeconds", "spec.revisionHistoryLimit", "spec.ordinals", "spec.volumeClaimTemplates.metadata.name",
		"spec.volumeClaimTemplates.apiVersion", "spec.volumeClaimTemplates.kind")
	return append(supported,
		Field{Path: "spec.serviceName", Support: Honoured, Note: "Used as the subdomain of the pods."},
		Field{
			Path: "spec.volumeClaimTemplates", Support: NoEffect,
			Note: "A claim is a directory that podctl creates: its size, class and access modes have no effect.",
		},
		Field{
			Path: "spec.persistentVolumeClaimRetentionPolicy", Support: NoEffect,
			Note: "Data of claims stays until `podctl delete --volumes` or `podctl prune --volumes`.",
		})
}

func daemonSetFields() []Field {
	supported := honoured("spec.selector", "spec.minReadySeconds", "spec.revisionHistoryLimit",
		"spec.updateStrategy.type")
	return append(supported,
		Field{
			Path: "spec.template.spec.nodeSelector", Support: Honoured,
			Note: "A machine without these labels does not run the pod.",
		},
		Field{
			Path: "spec.template." + RequiredNodeAffinity, Support: Honoured,
			Note: "A machine without such labels does not run the pod.",
		},
		Field{
			Path: "spec.updateStrategy", Support: NoEffect,
			Note: "podctl has one machine, which runs one pod of the DaemonSet.",
		})
}

func jobFields() []Field {
	supported := honoured("spec.parallelism", "spec.completions", "spec.activeDeadlineSeconds", "spec.podFailurePolicy",
		"spec.successPolicy", "spec.backoffLimit", "spec.backoffLimitPerIndex", "spec.maxFailedIndexes",
		"spec.selector", "spec.manualSelector", "spec.ttlSecondsAfterFinished", "spec.completionMode", "spec.suspend")
	return append(supported,
		Field{
			Path: "spec.podReplacementPolicy", Support: NoEffect,
			Note: "A retry starts once the previous pod has ended.",
		},
		Field{
			Path: "spec.managedBy", Support: Refused,
			Note: "Another controller would manage the Job, and podctl has none.",
		})
}

func cronJobFields() []Field {
	rows := honoured("spec.schedule", "spec.timeZone", "spec.startingDeadlineSeconds", "spec.concurrencyPolicy",
		"spec.suspend", "spec.successfulJobsHistoryLimit", "spec.failedJobsHistoryLimit",
		"spec.jobTemplate.metadata.labels", "spec.jobTemplate.metadata.annotations")
	rows = append(rows, Field{
		Path: "spec.jobTemplate.metadata", Support: NoEffect,
		Note: "Jobs are named after their CronJob and the time of their run.",
	})
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
		Field{Path: "spec.clusterIP", Support: Honoured, Note: "None, or an address of podctl's range."},
		Field{Path: "spec.clusterIPs", Support: Honoured, Note: "Like clusterIP, one for each IP family."},
		Field{Path: "spec.ports.nodePort", Support: Honoured, Note: "30000 to 32767."},
		Field{Path: "spec.ports.appProtocol", Support: NoEffect, Note: "podctl does not inspect traffic."},
		Field{
			Path: "spec.sessionAffinity", Support: Honoured,
			Note: "A client keeps its pod while the set of ready pods stays the same.",
		},
		Field{
			Path: "spec.sessionAffinityConfig", Support: NoEffect,
			Note: "A client keeps its pod while the set of ready pods stays the same.",
		},
		Field{Path: "spec.externalTrafficPolicy", Support: NoEffect, Note: outside},
		Field{Path: "spec.internalTrafficPolicy", Support: NoEffect, Note: outside},
		Field{Path: "spec.healthCheckNodePort", Support: NoEffect, Note: outside},
		Field{Path: "spec.trafficDistribution", Support: NoEffect, Note: outside},
		Field{Path: "spec.loadBalancerIP", Support: NoEffect, Note: "Services use only the node's own addresses."},
		Field{Path: "spec.loadBalancerClass", Support: NoEffect, Note: "Services use only the node's own addresses."},
		Field{
			Path: "spec.loadBalancerSourceRanges", Support: Refused,
			Note: "podctl does not filter clients, and the port would be open to all.",
		},
		Field{
			Path: "spec.externalIPs", Support: Refused,
			Note: "podctl accepts traffic only on the node's own addresses.",
		},
		Field{
			Path: "spec.externalName", Support: NoEffect,
			Note: "Pods find Services in their hosts files, which cannot map one name to another.",
		})
}
