package podspec

import v1 "k8s.io/api/core/v1"

// UsesClusterDNS reports whether a pod uses the DNS of a cluster, if there is one (kubelet: getPodDNSType).
func UsesClusterDNS(pod *v1.Pod) bool {
	switch pod.Spec.DNSPolicy {
	case v1.DNSClusterFirstWithHostNet:
		return true
	case v1.DNSClusterFirst, "":
		return !pod.Spec.HostNetwork
	case v1.DNSDefault, v1.DNSNone:
	}
	return false
}
