package statuses

import (
	"cmp"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
)

// mergePhase sets phase, reason and message. It reports whether the pod gets its terminal phase now.
func (m *Merge) mergePhase(s *v1.PodStatus) (ends bool) {
	old := &m.API.Status
	phase := cmp.Or(old.Phase, v1.PodPending)
	switch {
	case model.IsOver(old):
		// A terminal phase is final (kubelet: generateAPIPodStatus).
		s.Phase = old.Phase
	case model.IsOver(s) && m.mayRun():
		s.Phase, s.Reason, s.Message = phase, old.Reason, old.Message
	case model.IsOver(s):
		return true
	case s.Phase == v1.PodPending && phase == v1.PodRunning && !m.initializes(s):
		// The records of the containers are lost (kubelet: convertToAPIContainerStatuses).
		s.Phase = v1.PodRunning
	}
	if s.Phase == old.Phase {
		if s.Phase != m.Own.Phase {
			s.Reason, s.Message = "", ""
		}
		s.Reason, s.Message = cmp.Or(s.Reason, old.Reason), cmp.Or(s.Message, old.Message)
	}
	return false
}

// mayRun reports whether a container of the pod runs or may run.
func (m *Merge) mayRun() bool {
	if m.MayRun {
		return true
	}
	for _, list := range model.ContainerStatuses(&m.Own) {
		for i := range list {
			if list[i].State.Running != nil {
				return true
			}
		}
	}
	return false
}

// initializes reports whether an init container has not ended with 0. A pod that runs its init containers again, in a
// new sandbox, is pending again, as with a kubelet (getPhase).
func (m *Merge) initializes(s *v1.PodStatus) bool {
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		if end := c.State.Terminated; !m.isSidecar(c.Name) && (end == nil || end.ExitCode != 0) {
			return true
		}
	}
	return false
}

func (m *Merge) isSidecar(name string) bool {
	for i := range m.API.Spec.InitContainers {
		c := &m.API.Spec.InitContainers[i]
		if c.Name == name {
			return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		}
	}
	return false
}
