package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
)

// Ended reports whether the pod ends because its source deletes it or because it was evicted, and none of its
// containers runs. None starts any more.
func Ended(p *Pod) bool {
	m := &p.Observed.Memory
	return (m.End != nil || m.Eviction != nil) && !p.AnyRunning()
}

// addUnknownEnds adds an end to the containers of an ended pod that have no record of theirs. podctl does not know
// whether such a container was successful, so it counts as failed (kubelet: TerminatePod).
func addUnknownEnds(p *Pod, s *v1.PodStatus) {
	if !Ended(p) {
		return
	}
	if hasInitialised(p.Manifest, s) {
		endUnknown(s.ContainerStatuses)
	}
	endUnknown(tried(s.InitContainerStatuses))
}

// endUnknown gives the containers that have not ended an unknown end.
func endUnknown(statuses []v1.ContainerStatus) {
	for i := range statuses {
		if statuses[i].State.Terminated == nil {
			statuses[i].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
				ExitCode: 137, Reason: "ContainerStatusUnknown",
				Message: "The container could not be located when the pod was terminated",
			}}
		}
	}
}

// hasInitialised reports whether the init containers have succeeded, or a regular container has left its waiting state
// (kubelet: hasPodInitialized). A pod without init containers has.
func hasInitialised(pod *v1.Pod, s *v1.PodStatus) bool {
	for i := range s.ContainerStatuses {
		if c := &s.ContainerStatuses[i]; c.State.Waiting == nil || c.LastTerminationState.Terminated != nil {
			return true
		}
	}
	n := len(s.InitContainerStatuses)
	if n == 0 {
		return true
	}
	last := &s.InitContainerStatuses[n-1]
	if podspec.InitContainers(pod)[n-1].Type == podspec.Sidecar {
		return last.State.Running != nil && ptr.Deref(last.Started, false)
	}
	succeeded := func(t *v1.ContainerStateTerminated) bool { return t != nil && t.ExitCode == 0 }
	return succeeded(last.State.Terminated) || succeeded(last.LastTerminationState.Terminated)
}

// tried returns the init containers without those at the end of the list that never started (kubelet:
// initializedContainers). It always returns the first.
func tried(statuses []v1.ContainerStatus) []v1.ContainerStatus {
	for i, s := range slices.Backward(statuses) {
		if s.State.Waiting == nil || s.LastTerminationState.Terminated != nil {
			return statuses[:i+1]
		}
	}
	return statuses[:min(len(statuses), 1)]
}
