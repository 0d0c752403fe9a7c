package model

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// Rejection explains why a pod was not admitted. A rejected pod uses no resources of the node.
type Rejection struct {
	// Reason and Message are the kubelet's.
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// Settings are the admission settings at the time of the rejection.
	Settings string `json:"settings,omitempty"`
	// At is when the pod was rejected.
	At time.Time `json:"at,omitzero"`
}

// StatusMessage returns the status message of a rejected pod (kubelet: rejectPod).
func (r *Rejection) StatusMessage() string { return "Pod was rejected: " + r.Message }

// AllocateFailed returns a kubelet's message for a pod that is rejected because of its devices (kubelet:
// unexpectedAdmissionError).
func AllocateFailed(cause string) string {
	return "Allocate failed due to " + cause + ", which is unexpected"
}

// Admitted lists the resources that an admitted pod uses on the node until it ends.
type Admitted struct {
	Pod      PodRef
	Requests v1.ResourceList
	// Ports are the ports that it uses on the node.
	Ports []podspec.Port
	// Priority and QOSClass decide which pods a critical pod preempts.
	Priority int32
	QOSClass v1.PodQOSClass
	// Terminating reports whether the pod is being deleted or preempted.
	Terminating bool
}

// Preemption ends pods so that a critical pod gets their resources.
type Preemption struct {
	Pods []PodRef
	// Resource is the first resource that is not sufficient.
	Resource v1.ResourceName
}

// PendingResize explains why a resize waits (kubelet: SetPodResizePendingCondition).
type PendingResize struct {
	// Reason is that of the failed admission check. Message is the kubelet's text.
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// Generation is metadata.generation of the version that asks for the resize.
	Generation int64 `json:"generation"`
}

// Resizing is a resize that was admitted (kubelet: SetPodResizeInProgressCondition).
type Resizing struct {
	// Generation is metadata.generation of the version whose resources were admitted.
	Generation int64 `json:"generation"`
	// Error is the kubelet's text of the last failure; empty without one.
	Error string `json:"error,omitempty"`
}
