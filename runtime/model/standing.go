package model

import v1 "k8s.io/api/core/v1"

// WorkloadKeeper is the source that pods of workloads have in their records, whoever made them.
const WorkloadKeeper = "workloads"

// Standing is how a pod stands: its status, and whether its manifest asks for more than there is.
type Standing struct {
	Status v1.PodStatus
	// Pending is set while a pass has something to do, or something holds it.
	Pending bool
	// Stopping is set while containers of the pod are being stopped, or are about to be, so that others start in their place.
	Stopping bool
	// Unknown is why the pod could not be observed; nil if it was. Status has the phase Unknown then.
	Unknown error
}
