package eviction

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/podctl/podctl/podspec"
)

// Disk is what something takes of a file system.
type Disk struct{ Bytes, Inodes int64 }

func (d *Disk) add(other Disk) {
	d.Bytes += other.Bytes
	d.Inodes += other.Inodes
}

// of is what counts for a resource.
func (d Disk) of(what v1.ResourceName) int64 {
	if what == inodes {
		return d.Inodes
	}
	return d.Bytes
}

// ContainerUsage is what one container uses; nil for what is not known.
type ContainerUsage struct {
	Name string
	// Memory is its working set in bytes.
	Memory *int64
	// Root is its writable layer, Logs are the files of its log.
	Root, Logs *Disk
}

// Usage is what a pod uses.
type Usage struct {
	Containers []ContainerUsage
	// Volumes are those that lie on the disk of the node and end with the pod.
	Volumes Disk
	// Processes is their number.
	Processes int64
}

func (u *Usage) memory() int64 {
	sum := int64(0)
	for i := range u.Containers {
		if used := u.Containers[i].Memory; used != nil {
			sum += *used
		}
	}
	return sum
}

// disk is what the pod takes of the file system of a signal.
func (u *Usage) disk(s Signal, look *Look) Disk {
	layers, files := look.counts(s)
	var sum Disk
	for i := range u.Containers {
		if root := u.Containers[i].Root; root != nil && layers {
			sum.add(*root)
		}
		if logs := u.Containers[i].Logs; logs != nil && files {
			sum.add(*logs)
		}
	}
	if files {
		sum.add(u.Volumes)
	}
	return sum
}

// candidate is a pod with what it uses of what runs out.
type candidate struct {
	pod *v1.Pod
	// known is unset for a pod of which nobody can say what it uses.
	known bool
	// above is what it uses beyond what it requests, exceeds whether that is anything.
	above   int64
	exceeds bool
}

// rank is the order in which pods go: those of which nothing is known, those that use more than they
// request, those of low priority, those that use most beyond their requests (kubelet:
// rankMemoryPressure, rankDiskPressureFunc, rankPIDPressure).
func rank(s Signal, look *Look, pods []*v1.Pod, usage map[types.UID]*Usage) []*v1.Pod {
	all := make([]candidate, 0, len(pods))
	for _, pod := range pods {
		all = append(all, newCandidate(s, look, pod, usage[pod.UID]))
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if s == PIDAvailable {
			return cmp.Or(a.byPriority(&b), first(!a.known, !b.known), cmp.Compare(b.above, a.above))
		}
		return cmp.Or(first(!a.known, !b.known), first(a.exceeds, b.exceeds), a.byPriority(&b), cmp.Compare(b.above, a.above))
	})
	order := make([]*v1.Pod, 0, len(all))
	for i := range all {
		order = append(order, all[i].pod)
	}
	return order
}

func newCandidate(s Signal, look *Look, pod *v1.Pod, usage *Usage) candidate {
	c := candidate{pod: pod, known: usage != nil}
	if usage == nil {
		return c
	}
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	request := func(name v1.ResourceName) int64 {
		quantity := requests[name]
		return quantity.Value()
	}
	switch what := s.resource(); what { //nolint:exhaustive // the others are of disks
	case v1.ResourceMemory:
		c.above = usage.memory() - request(what)
		c.exceeds = c.above > 0
	case pids:
		c.above = usage.Processes
	default:
		used := usage.disk(s, look).of(what)
		c.exceeds = used > request(what)
		// The kubelet takes the request of storage off the number of inodes, too.
		c.above = used - request(v1.ResourceEphemeralStorage)
	}
	return c
}

func (c *candidate) byPriority(other *candidate) int {
	return cmp.Compare(podspec.Priority(c.pod), podspec.Priority(other.pod))
}

// first puts what is so before what is not (kubelet: cmpBool).
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
