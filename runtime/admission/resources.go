package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// shortage is a resource that is not sufficient (kubelet: InsufficientResourceError).
type shortage struct {
	name                      v1.ResourceName
	requested, used, capacity int64
}

// missing returns the amount that must become free (kubelet: GetInsufficientAmount).
func (s shortage) missing() int64 { return s.requested - (s.capacity - s.used) }

func (s shortage) rejection() *model.Rejection {
	return &model.Rejection{Reason: model.OutOf(s.name), Message: fmt.Sprintf(
		"Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
		s.name, s.requested, s.used, s.capacity)}
}

// shortages returns the resources that are not sufficient, in the order in which they are checked (kube-scheduler:
// fitsRequest).
func (r *Request) shortages() []shortage {
	var found []shortage
	if limit := r.Settings.MaxPods; r.Before == nil && limit > 0 && len(r.Others) >= limit {
		found = append(found, shortage{v1.ResourcePods, 1, int64(len(r.Others)), int64(limit)})
	}
	if len(r.Machine.Capacity) == 0 {
		return found
	}
	has, wants, before := r.Settings.Allocatable(r.Machine.Capacity), requestsOf(r.Pod), v1.ResourceList{}
	if r.Before != nil {
		before = requestsOf(r.Before)
	}
	for _, name := range slices.SortedFunc(maps.Keys(wants), inOrder) {
		left, known := has[name]
		asked := amount(name, wants)
		if asked <= amount(name, before) || podspec.IsExtendedResource(name) || (!known && isMeasured(name)) {
			continue
		}
		used := int64(0)
		for i := range r.Others {
			used += amount(name, r.Others[i].Requests)
		}
		if capacity := amount(name, v1.ResourceList{name: left}); asked > capacity-used {
			found = append(found, shortage{name, asked, used, capacity})
		}
	}
	return found
}

// isMeasured reports whether a missing entry of a resource means that the capacity is unknown, and not zero.
func isMeasured(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage
}

// requestsOf returns the requests of a pod, including those of its sandbox (kubelet: PodRequests).
func requestsOf(pod *v1.Pod) v1.ResourceList {
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}

// Shrinks reports whether an edit of a pod reduces one of its requests.
func Shrinks(before, after *v1.Pod) bool {
	was, is := requestsOf(before), requestsOf(after)
	for name := range was {
		if amount(name, is) < amount(name, was) {
			return true
		}
	}
	return false
}

// amount returns the amount of a resource in a list, for cpu in thousandths of a core.
func amount(name v1.ResourceName, list v1.ResourceList) int64 {
	quantity := list[name]
	if name == v1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// inOrder compares resources in the order in which they are checked.
func inOrder(a, b v1.ResourceName) int {
	order := []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}
	rank := func(name v1.ResourceName) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}
