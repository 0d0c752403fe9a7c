package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// OwnerWorkloads is the owner of every pod of a workload (podspec.Origin): the agent's source of these pods. It does
// not depend on who applied the workload.
const OwnerWorkloads = "workloads"

// Standing is the state of a pod: its status, and whether its manifest asks for more.
type Standing struct {
	Status v1.PodStatus
	// Pending is set while a pass has something to do, or something holds it.
	Pending bool
	// Stopping is set while containers of the pod stop, or are about to, so that others start in their place.
	Stopping bool
	// Unknown is the error if the pod could not be observed; otherwise nil. Status then has the phase Unknown.
	Unknown error
}

// ContainerStatuses returns the statuses of init containers with sidecars, of regular and of ephemeral containers.
func ContainerStatuses(s *v1.PodStatus) [][]v1.ContainerStatus {
	return [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses}
}

// StatusOf returns the status of a container; nil if the pod has none.
func StatusOf(status *v1.PodStatus, container string) *v1.ContainerStatus {
	for _, list := range ContainerStatuses(status) {
		if i := slices.IndexFunc(list, func(s v1.ContainerStatus) bool { return s.Name == container }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// IsOver reports whether a pod has succeeded or failed.
func IsOver(status *v1.PodStatus) bool {
	return status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed
}
