package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	nodesysctl "k8s.io/component-helpers/node/util/sysctl"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Settings are the admission settings that a kubelet has as flags.
type Settings struct {
	// MaxPods is the maximum number of pods that run at the same time.
	MaxPods int
	// Reserved is reserved for the system and not available to pods.
	Reserved v1.ResourceList
	// UnsafeSysctls are the sysctls that pods may set beside the safe ones; a star at the end matches any rest.
	UnsafeSysctls []string
	// Labels are additional labels of the node.
	Labels map[string]string
}

// String returns a text that identifies the settings.
func (s *Settings) String() string {
	parts := []string{fmt.Sprintf("max-pods=%d", s.MaxPods)}
	for _, name := range slices.Sorted(maps.Keys(s.Reserved)) {
		quantity := s.Reserved[name]
		parts = append(parts, fmt.Sprintf("reserved %s=%s", name, quantity.String()))
	}
	for _, name := range s.UnsafeSysctls {
		parts = append(parts, "sysctl "+name)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		parts = append(parts, fmt.Sprintf("label %s=%s", key, s.Labels[key]))
	}
	return strings.Join(parts, ", ")
}

// Check returns an error for invalid settings.
func (s *Settings) Check() error {
	for _, pattern := range s.UnsafeSysctls {
		if ns, name, _ := nodesysctl.GetNamespace(pattern); ns == nodesysctl.UnknownNamespace {
			return fmt.Errorf("sysctl %q: %s is not known to belong to a namespace of the pod", pattern, name)
		}
		if star := strings.Index(pattern, "*"); star >= 0 && star < len(pattern)-1 {
			return fmt.Errorf("sysctl %q: * is allowed only at its end", pattern)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Reserved)) {
		if name != v1.ResourceCPU && name != v1.ResourceMemory && name != v1.ResourceEphemeralStorage {
			return fmt.Errorf("%s cannot be reserved: only cpu, memory and ephemeral-storage can", name)
		}
	}
	return nil
}

// The minimum that a kubelet keeps free: it evicts pods before the machine has less (kubelet: DefaultEvictionHard).
const (
	keptMemory  = 100 << 20
	keptStorage = float32(0.1)
)

// Allocatable returns the resources of a machine for pods: its capacity without reserved resources, the minimum that
// eviction keeps free and, for memory, huge pages (kubelet: GetNodeAllocatableReservation, MachineInfo). Unknown
// resources are missing.
func (s *Settings) Allocatable(capacity v1.ResourceList) v1.ResourceList {
	list := v1.ResourceList{}
	for name, has := range capacity {
		if has.IsZero() && !isHugePages(name) {
			continue
		}
		left := has.DeepCopy()
		left.Sub(s.Reserved[name])
		left.Sub(keptFree(name, &has))
		list[name] = left
	}
	if memory, known := list[v1.ResourceMemory]; known {
		for name, pages := range capacity {
			if isHugePages(name) {
				memory.Sub(pages)
			}
		}
		list[v1.ResourceMemory] = memory
	}
	for name, left := range list {
		if left.Sign() < 0 {
			list[name] = resource.Quantity{Format: left.Format}
		}
	}
	return list
}

func keptFree(name v1.ResourceName, has *resource.Quantity) resource.Quantity {
	switch name { //nolint:exhaustive // nothing else runs short
	case v1.ResourceMemory:
		return *resource.NewQuantity(keptMemory, resource.BinarySI)
	case v1.ResourceEphemeralStorage:
		return *resource.NewQuantity(int64(float64(has.Value())*float64(keptStorage)), resource.BinarySI)
	}
	return resource.Quantity{}
}

func isHugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

// TakenBy returns the resources that a pod uses on the node once it is admitted.
func TakenBy(pod *v1.Pod) model.Admitted {
	return model.Admitted{Pod: model.RefOf(pod), Requests: requestsOf(pod), Ports: podspec.HostPorts(pod)}
}
