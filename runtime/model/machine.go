package model

import v1 "k8s.io/api/core/v1"

// ResourcePIDs is the number of tasks of a machine. It can be reserved, but pods cannot request it (kubelet:
// pidlimit.PIDs).
const ResourcePIDs v1.ResourceName = "pid"

// Machine describes the machine that a pod runs on. A nil section is unknown.
type Machine struct {
	// Name is the name of the node; empty if it is unknown.
	Name string
	// NodeIPs are its addresses, the primary one first.
	NodeIPs []string
	// Capacity is its cpu, memory and huge pages, and the disk of volumes as ephemeral-storage.
	Capacity v1.ResourceList
	// Labels are the labels that a kubelet gives its node.
	Labels map[string]string
	// SELinux reports whether the kernel enforces SELinux or only logs violations.
	SELinux *bool
	// AppArmor reports whether the kernel enforces AppArmor, SupplementalGroups whether the runtime supports
	// supplementalGroupsPolicy.
	AppArmor, SupplementalGroups *bool
}

// NodeIdentity is how the API server knows this machine. Pods of the API server get these values.
type NodeIdentity struct {
	// Name is the name of the Node.
	Name string `json:"name"`
	// IPs are the addresses of the Node, the primary one first.
	IPs []string `json:"ips"`
	// Allocatable are the resources of the Node for pods.
	Allocatable v1.ResourceList `json:"allocatable"`
	// ClusterDNS are the addresses of the cluster's DNS servers; ClusterDomain is the end of its names.
	ClusterDNS    []string `json:"clusterDNS,omitempty"`
	ClusterDomain string   `json:"clusterDomain,omitempty"`
}
