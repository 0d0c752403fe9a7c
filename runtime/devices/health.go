package devices

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AddHealth adds the health of the devices of a pod to the statuses of its regular containers (kubelet:
// UpdateAllocatedResourcesStatus). It is the health that the plugin has reported last, also while the plugin is gone. A
// device that no plugin has reported since the start of the agent counts as healthy.
func (m *Manager) AddHealth(pod types.UID, s *v1.PodStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range s.ContainerStatuses {
		own := m.records.of(pod, s.ContainerStatuses[i].Name)
		var all []v1.ResourceStatus
		for _, k := range own.sorted() {
			all = append(all, v1.ResourceStatus{
				Name: v1.ResourceName(k.resource), Resources: healthOf(m.resources[k.resource], own[k].ids()),
			})
		}
		s.ContainerStatuses[i].AllocatedResourcesStatus = all
	}
}

// healthOf returns the health of devices of one resource. r is nil if no plugin has reported it.
func healthOf(r *resource, ids []string) []v1.ResourceHealth {
	all := make([]v1.ResourceHealth, 0, len(ids))
	for _, id := range ids {
		one := v1.ResourceHealth{ResourceID: v1.ResourceID(id), Health: v1.ResourceHealthStatusHealthy}
		if r != nil && r.devices[id].sick {
			one.Health = v1.ResourceHealthStatusUnhealthy
		}
		all = append(all, one)
	}
	return all
}
