package podspec

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// systemCritical is the lowest priority of pods that the machine needs (kubelet: scheduling.SystemCriticalPriority).
const systemCritical = 2_000_000_000

// Priority returns the priority of a pod: its number, or that of a class that every cluster has; else 0
// (kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption).
func Priority(pod *v1.Pod) int32 {
	class := int32(0)
	switch pod.Spec.PriorityClassName {
	case "system-cluster-critical":
		class = systemCritical
	case "system-node-critical":
		class = systemCritical + 1000
	}
	return ptr.Deref(pod.Spec.Priority, class)
}

// IsCritical reports whether the machine itself needs a pod. Such a pod is admitted under pressure and never evicted
// (kubelet: IsCriticalPod, without the rule for pods from files).
func IsCritical(pod *v1.Pod) bool { return Priority(pod) >= systemCritical }
