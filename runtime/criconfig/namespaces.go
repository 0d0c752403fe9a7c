package criconfig

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// namespaces says which namespaces a pod shares with whom (kubelet:
// NamespacesForPod). With a target the processes of that container are seen.
func namespaces(pod *v1.Pod, targetID string) *runtimeapi.NamespaceOption {
	n := &runtimeapi.NamespaceOption{
		Network:       runtimeapi.NamespaceMode_POD,
		Ipc:           runtimeapi.NamespaceMode_POD,
		Pid:           pidMode(pod),
		UsernsOptions: &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE},
	}
	if pod.Spec.HostNetwork {
		n.Network = runtimeapi.NamespaceMode_NODE
	}
	if pod.Spec.HostIPC {
		n.Ipc = runtimeapi.NamespaceMode_NODE
	}
	if targetID != "" && n.GetPid() == runtimeapi.NamespaceMode_CONTAINER {
		n.Pid, n.TargetId = runtimeapi.NamespaceMode_TARGET, targetID
	}
	return n
}

func pidMode(pod *v1.Pod) runtimeapi.NamespaceMode {
	switch {
	case pod.Spec.HostPID:
		return runtimeapi.NamespaceMode_NODE
	case pod.Spec.ShareProcessNamespace != nil && *pod.Spec.ShareProcessNamespace:
		return runtimeapi.NamespaceMode_POD
	}
	return runtimeapi.NamespaceMode_CONTAINER
}

// supplementalGroups are fsGroup and then the pod's own groups.
func supplementalGroups(pod *v1.Pod) []int64 {
	own := pod.Spec.SecurityContext
	if own == nil {
		return nil
	}
	var groups []int64
	if own.FSGroup != nil {
		groups = append(groups, *own.FSGroup)
	}
	return append(groups, own.SupplementalGroups...)
}

func groupsPolicy(pod *v1.Pod) runtimeapi.SupplementalGroupsPolicy {
	if own := pod.Spec.SecurityContext; own != nil && own.SupplementalGroupsPolicy != nil &&
		*own.SupplementalGroupsPolicy == v1.SupplementalGroupsPolicyStrict {
		return runtimeapi.SupplementalGroupsPolicy_Strict
	}
	return runtimeapi.SupplementalGroupsPolicy_Merge
}
