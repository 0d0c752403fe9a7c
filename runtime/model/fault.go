package model

import v1 "k8s.io/api/core/v1"

// Fault is something known against making a sandbox or a container: it would fail.
type Fault struct {
	// Reason is the kubelet's word for it.
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// Status is what the pod's status and events say of it, where a kubelet has other words.
	Status string `json:"status,omitempty"`
	// Volume reports whether a volume of the pod cannot be made ready: its containers are not even
	// tried.
	Volume bool `json:"volume,omitempty"`
	// ImageUser reports whether it lies in the user of the image that is there. A pull may bring
	// another.
	ImageUser bool `json:"imageUser,omitempty"`
}

// OutOf is the reason for a resource that the node does not have enough of (kubelet:
// InsufficientResourcePrefix).
func OutOf(name v1.ResourceName) Reason { return Reason("OutOf" + string(name)) }
