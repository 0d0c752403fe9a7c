package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	// Enforce limits all pods together to the resources that are not reserved.
	Enforce bool
	// KeptFree are the amounts that eviction keeps free. If nil, they are the kubelet's defaults.
	KeptFree map[v1.ResourceName]Share
	// UnsafeSysctls are the sysctls that pods may set beside the safe ones; a star at the end matches any rest.
	UnsafeSysctls []string
	// Labels are additional labels of the node.
	Labels map[string]string
}

// Share is an amount of a resource: a quantity, or if that is nil, a percentage of the capacity.
type Share struct {
	Quantity *resource.Quantity
	Percent  float32
}

// Of returns the share of a capacity (kubelet: GetThresholdQuantity).
func (s Share) Of(capacity int64) resource.Quantity {
	if s.Quantity != nil {
		return *s.Quantity
	}
	return *resource.NewQuantity(int64(float64(capacity)*float64(s.Percent/100)), resource.BinarySI)
}

// Value returns the share in the syntax of flags, such as 100Mi or 10%.
func (s Share) Value() string {
	if s.Quantity != nil {
		return s.Quantity.String()
	}
	return strconv.FormatFloat(float64(s.Percent), 'f', -1, 32) + "%"
}

// String returns a text that identifies the settings.
func (s *Settings) String() string {
	parts := []string{fmt.Sprintf("max-pods=%d", s.MaxPods)}
	for _, name := range slices.Sorted(maps.Keys(s.Reserved)) {
		quantity := s.Reserved[name]
		parts = append(parts, fmt.Sprintf("reserved %s=%s", name, quantity.String()))
	}
	for _, name := range slices.Sorted(maps.Keys(s.KeptFree)) {
		free := s.KeptFree[name]
		parts = append(parts, fmt.Sprintf("free %s=%s/%g%%", name, free.Quantity.String(), free.Percent))
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
		known := []v1.ResourceName{
			v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, model.ResourcePIDs,
		}
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s cannot be reserved: only cpu, memory, ephemeral-storage and pid can", name)
		}
	}
	return nil
}

// defaultKeptFree returns the minimum that a kubelet keeps free: it evicts pods before the machine has less (kubelet:
// DefaultEvictionHard).
func defaultKeptFree() map[v1.ResourceName]Share {
	return map[v1.ResourceName]Share{
		v1.ResourceMemory:           {Quantity: resource.NewQuantity(100<<20, resource.BinarySI)},
		v1.ResourceEphemeralStorage: {Percent: 10},
	}
}

// defaultMaxPods is the number of pods of a node without a limit of its own (kubelet: maxPods).
const defaultMaxPods = 110

// NodeResources returns the resources that a Node shows for the capacity of its machine: all of them with the number of
// pods, and those for pods. Admission uses the same numbers.
func (s *Settings) NodeResources(machine v1.ResourceList) (capacity, allocatable v1.ResourceList) {
	capacity = v1.ResourceList{}
	for name, has := range machine {
		capacity[name] = has.DeepCopy()
	}
	capacity[v1.ResourcePods] = *resource.NewQuantity(int64(cmp.Or(s.MaxPods, defaultMaxPods)), resource.DecimalSI)
	return capacity, s.Allocatable(capacity)
}

// Allocatable returns the resources of a machine for pods: its capacity without reserved resources, the minimum that
// eviction keeps free and, for memory, huge pages (kubelet: GetNodeAllocatableReservation, MachineInfo). Unknown
// resources are missing.
func (s *Settings) Allocatable(capacity v1.ResourceList) v1.ResourceList {
	list, free := v1.ResourceList{}, s.KeptFree
	if free == nil {
		free = defaultKeptFree()
	}
	for name, has := range capacity {
		if has.IsZero() && !podspec.IsHugePages(name) {
			continue
		}
		left := has.DeepCopy()
		left.Sub(s.Reserved[name])
		if kept, is := free[name]; is {
			left.Sub(kept.Of(has.Value()))
		}
		list[name] = left
	}
	if memory, known := list[v1.ResourceMemory]; known {
		for name, pages := range capacity {
			if podspec.IsHugePages(name) {
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

// Limits returns how much of a machine's capacity all pods together may use. What eviction keeps free is part of it
// (kubelet: getNodeAllocatableInternalAbsolute). If nothing is left of a resource, it returns an error.
func (s *Settings) Limits(capacity v1.ResourceList) (v1.ResourceList, error) {
	limits := v1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		left := capacity[name].DeepCopy()
		if s.Enforce {
			left.Sub(s.Reserved[name])
		}
		if reserved := s.Reserved[name]; left.Sign() <= 0 && (name == v1.ResourceMemory || name == model.ResourcePIDs) {
			has := capacity[name]
			return nil, fmt.Errorf("nothing is left for pods: %s of %s is reserved, and the machine has %s",
				reserved.String(), name, has.String())
		}
		if left.Sign() < 0 {
			left = resource.Quantity{Format: left.Format}
		}
		limits[name] = left
	}
	return limits, nil
}

// TakenBy returns the resources that a pod uses on the node once it is admitted.
func TakenBy(pod *v1.Pod) model.Admitted {
	return model.Admitted{
		Pod: model.RefOf(pod), Requests: requestsOf(pod), Ports: podspec.HostPorts(pod),
		Priority: podspec.Priority(pod), QOSClass: podspec.QOSClass(pod),
	}
}
