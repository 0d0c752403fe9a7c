package eviction

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/podctl/podctl/podspec"
)

// Disk is the usage of a file system.
type Disk struct{ Bytes, Inodes int64 }

func (d *Disk) add(other Disk) {
	d.Bytes += other.Bytes
	d.Inodes += other.Inodes
}

// of returns the part that counts for a resource.
func (d Disk) of(what v1.ResourceName) int64 {
	if what == inodes {
		return d.Inodes
	}
	return d.Bytes
}

// ContainerUsage is the usage of one container. A nil field is unknown.
type ContainerUsage struct {
	Name string
	// Memory is the working set in bytes.
	Memory *int64
	// Root is the writable layer. Logs are the log files.
	Root, Logs *Disk
}

// VolumeUsage is the usage of one volume.
type VolumeUsage struct {
	// Path is the directory of the volume.
	Name, Path string
	Disk       Disk
	// Local is set if the volume is on the node's disk and ends with the pod (kubelet: IsLocalEphemeralVolume).
	Local bool
}

// Usage is the usage of a pod. It lists only containers that run, and only measured volumes.
type Usage struct {
	Containers []ContainerUsage
	Volumes    []VolumeUsage
	// Hosts is the usage of the hosts file. It counts only for the limit of the pod.
	Hosts Disk
	// OwnImageFs is set if the writable layers are on another file system than logs and volumes.
	OwnImageFs bool
	// Processes is the number of processes.
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

// disk returns the pod's usage of the file system of a signal.
func (u *Usage) disk(s Signal, look *Measurement) Disk {
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
		sum.add(u.localVolumes())
	}
	return sum
}

// localVolumes returns the usage of the volumes that are on the node's disk and end with the pod.
func (u *Usage) localVolumes() Disk {
	var sum Disk
	for _, v := range u.Volumes {
		if v.Local {
			sum.add(v.Disk)
		}
	}
	return sum
}

// candidate is a pod with its usage of the resource that runs out.
type candidate struct {
	pod *v1.Pod
	// above is the usage beyond the request. exceeds reports whether the usage is higher than the request. It is unset
	// for processes, which pods cannot request.
	above   int64
	exceeds bool
}

// rank orders pods for eviction: first pods that use more than they request. Pods with low priority follow, then those
// that use most beyond their requests (kubelet: rankMemoryPressure, rankDiskPressureFunc, rankPIDPressure). The usage
// of each pod must be known.
func rank(s Signal, look *Measurement, pods []*v1.Pod, usage map[types.UID]*Usage) []*v1.Pod {
	all := make([]candidate, 0, len(pods))
	for _, pod := range pods {
		all = append(all, newCandidate(s, look, pod, usage[pod.UID]))
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(first(a.exceeds, b.exceeds), a.byPriority(&b), cmp.Compare(b.above, a.above))
	})
	order := make([]*v1.Pod, 0, len(all))
	for i := range all {
		order = append(order, all[i].pod)
	}
	return order
}

func newCandidate(s Signal, look *Measurement, pod *v1.Pod, usage *Usage) candidate {
	c := candidate{pod: pod}
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	request := func(name v1.ResourceName) int64 {
		quantity := requests[name]
		return quantity.Value()
	}
	switch what := s.resource(); what { //nolint:exhaustive // the others are about disks
	case v1.ResourceMemory:
		c.above = usage.memory() - request(what)
		c.exceeds = c.above > 0
	case pids:
		c.above = usage.Processes
	default:
		used := usage.disk(s, look).of(what)
		c.exceeds = used > request(what)
		// The kubelet subtracts the storage request also from the number of inodes.
		c.above = used - request(v1.ResourceEphemeralStorage)
	}
	return c
}

func (c *candidate) byPriority(other *candidate) int {
	return cmp.Compare(podspec.Priority(c.pod), podspec.Priority(other.pod))
}

// first orders true before false (kubelet: cmpBool).
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
