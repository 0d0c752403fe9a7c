package model

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// Rejection is why a pod was not admitted. It has nothing on the node, and counts for nothing.
type Rejection struct {
	// Reason and Message are the kubelet's.
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// Settings are those of the admission that rejected it.
	Settings string `json:"settings,omitempty"`
	// At is when the pod was rejected.
	At time.Time `json:"at,omitzero"`
}

// StatusMessage is what the status of a rejected pod says (kubelet: rejectPod).
func (r *Rejection) StatusMessage() string { return "Pod was rejected: " + r.Message }

// Admitted is what a pod takes of the node: one that was admitted and has not ended.
type Admitted struct {
	Pod      PodRef
	Requests v1.ResourceList
	// Ports are the ports of the node that it takes.
	Ports []podspec.Port
	// Going reports whether it is being deleted.
	Going bool
}
