package eviction

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/podctl/podctl/runtime/model"
)

// The kubelet's names for a pod's own limits of disk space, which it uses like those of signals.
const (
	emptyDirLimit  = "emptydirfs.limit"
	podLimit       = "ephemeralpodfs.limit"
	containerLimit = "ephemeralcontainerfs.limit"
)

// sizeLimit returns the sizeLimit of an emptyDir. It is nil if there is none.
func sizeLimit(vol *v1.Volume) *resource.Quantity {
	if vol.EmptyDir == nil || vol.EmptyDir.SizeLimit == nil || vol.EmptyDir.SizeLimit.Sign() <= 0 {
		return nil
	}
	return vol.EmptyDir.SizeLimit
}

// storageLimit returns the limit for all disk space of a pod: the sum of its containers' limits. A limit of any
// container is one of the pod.
func storageLimit(pod *v1.Pod) (resource.Quantity, bool) {
	limit, found := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[v1.ResourceEphemeralStorage]
	return limit, found
}

// isLimited reports whether a pod has limits of disk space.
func isLimited(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if sizeLimit(&pod.Spec.Volumes[i]) != nil {
			return true
		}
	}
	_, found := storageLimit(pod)
	return found
}

// exceeded returns the first limit of disk space that a pod exceeds: of a volume, of the pod, then of a container. It
// returns nil if there is none (kubelet: localStorageEviction).
func exceeded(pod *v1.Pod, used *Usage) *model.Eviction {
	for i := range pod.Spec.Volumes {
		vol := &pod.Spec.Volumes[i]
		if limit := sizeLimit(vol); limit != nil && limit.CmpInt64(used.volume(vol.Name)) < 0 {
			return over(emptyDirLimit, "Usage of EmptyDir volume %q exceeds the limit %q. ", vol.Name, limit)
		}
	}
	if limit, found := storageLimit(pod); found && limit.CmpInt64(used.storage()) < 0 {
		return over(podLimit, "Pod ephemeral local storage usage exceeds the total limit of containers %s. ", &limit)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		limit := c.Resources.Limits.StorageEphemeral()
		if !limit.IsZero() && limit.CmpInt64(used.container(c.Name)) < 0 {
			return over(containerLimit, "Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit)
		}
	}
	return nil
}

func over(signal, format string, args ...any) *model.Eviction {
	return &model.Eviction{Message: fmt.Sprintf(format, args...), Signal: signal, OwnLimit: true}
}

// volume returns the usage of a volume in bytes. It is 0 for a volume that was not measured.
func (u *Usage) volume(name string) int64 {
	for _, v := range u.Volumes {
		if v.Name == name {
			return v.Disk.Bytes
		}
	}
	return 0
}

// container returns the usage of a container in bytes (kubelet: containerEphemeralStorageLimitEviction).
func (u *Usage) container(name string) int64 {
	sum := int64(0)
	for i := range u.Containers {
		if c := &u.Containers[i]; c.Name == name {
			sum += c.logs()
			if !u.OwnImageFs {
				sum += c.layer()
			}
		}
	}
	return sum
}

// storage returns the usage of the pod in bytes, on all file systems (kubelet: calcEphemeralStorage).
func (u *Usage) storage() int64 {
	sum := u.localVolumes().Bytes + u.Hosts.Bytes
	for i := range u.Containers {
		sum += u.Containers[i].logs() + u.Containers[i].layer()
	}
	return sum
}

func (c *ContainerUsage) logs() int64 {
	if c.Logs == nil {
		return 0
	}
	return c.Logs.Bytes
}

// layer returns the size of the writable layer in bytes.
func (c *ContainerUsage) layer() int64 {
	if c.Root == nil {
		return 0
	}
	return c.Root.Bytes
}
