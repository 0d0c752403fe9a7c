package statuses

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// The end of a container that ran and has no record any more (kubelet: convertToAPIContainerStatuses).
const (
	unknownEnd     = "ContainerStatusUnknown"
	unknownEndText = "The container could not be located when the pod was deleted.  The container used to be Running"
	killed         = 137
)

// mergeContainers completes the statuses of the containers with those in the API.
func (m *Merge) mergeContainers(s *v1.PodStatus) {
	for _, list := range model.ContainerStatuses(s) {
		for i := range list {
			own := &list[i]
			switch before := model.StatusOf(&m.API.Status, own.Name); {
			case before != nil:
				m.mergeContainer(own, before.DeepCopy())
			case m.MayRun && isCreated(own):
				m.hideRecord(own)
			}
		}
	}
}

// mergeContainer completes the status of one container. Its restart count never goes back, and the end of its last run
// stays (kubelet: convertToAPIContainerStatuses, checkContainerStateTransition).
func (m *Merge) mergeContainer(own, old *v1.ContainerStatus) {
	ended := old.State.Terminated
	switch {
	case m.MayRun && (isCreated(own) || m.endsForGood(own, old)):
		*own = *old
		own.Ready = false
		return
	case own.State.Terminated == nil && ended != nil && !m.mayLeave(own.Name, ended.ExitCode):
		*own = *old
		return
	case own.ContainerID == "":
		m.mergeWithoutRecord(own, old)
	case own.State.Running != nil && (ended != nil || m.startsAgain(own, old)) && old.RestartCount >= own.RestartCount:
		own.RestartCount = old.RestartCount + 1
	}
	own.RestartCount = max(own.RestartCount, old.RestartCount)
	if own.LastTerminationState.Terminated != nil {
		return
	}
	own.LastTerminationState.Terminated = old.LastTerminationState.Terminated
	if ended != nil && own.ContainerID != old.ContainerID {
		own.LastTerminationState.Terminated = ended
	}
}

// hideRecord shows a container that is being started, and that the API has no status of, as one without a record
// (kubelet: generateAPIPodStatus, which runs before the start).
func (m *Merge) hideRecord(own *v1.ContainerStatus) {
	own.State = podstatus.StateBeforeStart(m.API)
	own.ContainerID, own.ImageID = "", ""
}

// startsAgain reports whether another container runs in place of one that ran. A pod of a file that was deleted and
// written again has no records of its earlier containers, but its mirror pod may be the same.
func (m *Merge) startsAgain(own, old *v1.ContainerStatus) bool {
	return podspec.IsMirror(m.API) && old.State.Running != nil && own.ContainerID != old.ContainerID
}

// isCreated reports whether a container is created but not started. A kubelet shows it only if the start fails, without
// a reason. The pass that is under way starts it, so until then the status before stays.
func isCreated(own *v1.ContainerStatus) bool {
	return own.State.Waiting != nil && own.State.Waiting.Reason == ""
}

// endsForGood reports whether a container has ended that may not run again, as far as its restart policy says. The pass
// that runs may still start it again, because its image or its probe failed. The API server would refuse that after it
// has seen the end, so the end waits for the end of the pass.
func (m *Merge) endsForGood(own, old *v1.ContainerStatus) bool {
	end := own.State.Terminated
	return end != nil && old.State.Running != nil && !m.mayLeave(own.Name, end.ExitCode)
}

// mergeWithoutRecord completes the status of a container without a record. One that had ended stays so, and one that
// ran has ended in an unknown way. One that could not be started is shown until another one is created in its place, as
// in a kubelet, which keeps its record and the reason (kubelet: reasonCache).
func (m *Merge) mergeWithoutRecord(own, old *v1.ContainerStatus) {
	waiting := own.State.Waiting
	if waiting != nil && old.State.Waiting != nil {
		own.ContainerID, own.ImageID = old.ContainerID, old.ImageID
	}
	if waiting == nil || (waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing") {
		return
	}
	last := &own.LastTerminationState
	switch {
	case old.State.Terminated != nil, old.State.Waiting != nil && old.ContainerID != "":
		*own = *old
	case old.State.Running != nil && last.Terminated == nil && old.LastTerminationState.Terminated == nil:
		last.Terminated = &v1.ContainerStateTerminated{Reason: unknownEnd, Message: unknownEndText, ExitCode: killed}
		if m.API.DeletionTimestamp == nil {
			own.RestartCount = max(own.RestartCount, old.RestartCount+1)
		}
	}
}

// mayLeave reports whether a container that ended with an exit code may run again (kubelet:
// checkContainerStateTransition). The API server refuses other changes.
func (m *Merge) mayLeave(name string, exitCode int32) bool {
	ref, ok := podspec.FindContainer(m.API, name)
	if !ok || ref.Type == podspec.Ephemeral {
		return false
	}
	policy := m.API.Spec.RestartPolicy
	return policy == v1.RestartPolicyAlways || podstatus.HasRestartAllRule(m.API) ||
		policy == v1.RestartPolicyOnFailure && exitCode != 0 || podstatus.RestartsAfter(m.API, ref.Container, exitCode)
}
