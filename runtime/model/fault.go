package model

import v1 "k8s.io/api/core/v1"

// Fault is a known reason why the creation of a sandbox or a container would fail.
type Fault struct {
	// Reason is the kubelet's reason.
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// Status is the text for the pod's status and events, if a kubelet's text differs from the message.
	Status string `json:"status,omitempty"`
	// Volume reports whether a volume of the pod cannot be prepared. podctl then does not try to start its containers.
	Volume bool `json:"volume,omitempty"`
	// ImageUser reports whether the user of the present image causes the fault. A pulled image may have another one.
	ImageUser bool `json:"imageUser,omitempty"`
}

// OutOf returns the reason for a resource that the node does not have enough of (kubelet: InsufficientResourcePrefix).
func OutOf(name v1.ResourceName) Reason { return Reason("OutOf" + string(name)) }
