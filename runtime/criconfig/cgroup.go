package criconfig

import (
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// cgroupTop is the cgroup that contains all pods.
const cgroupTop = "kubepods"

// CgroupParent returns the pod's own cgroup in the form for the runtime: a path below the cgroup root, also for the
// systemd driver (kubelet: GetPodContainerName).
func CgroupParent(pod *v1.Pod, node Node) string {
	tier := strings.ToLower(string(podspec.QOSClass(pod)))
	if tier == "guaranteed" {
		tier = ""
	}
	return cgroupIn(tier, pod.UID, node)
}

// CgroupOfPods returns the cgroup that contains all pods.
func CgroupOfPods(node Node) string {
	name := path.Join("/", node.CgroupRoot, cgroupTop)
	if node.SystemdCgroup {
		return systemdName(name)
	}
	return name
}

// CgroupTiers returns the cgroups that contain the pods of the two lower QoS classes.
func CgroupTiers(node Node) []string {
	var names []string
	for _, tier := range []string{"besteffort", "burstable"} {
		name := path.Join("/", node.CgroupRoot, cgroupTop, tier)
		if node.SystemdCgroup {
			name = systemdName(name)
		}
		names = append(names, name)
	}
	return names
}

// CgroupParents returns the cgroups that a pod may have had: one for each QoS class.
func CgroupParents(uid types.UID, node Node) []string {
	var names []string
	for _, tier := range []string{"", "burstable", "besteffort"} {
		names = append(names, cgroupIn(tier, uid, node))
	}
	return names
}

func cgroupIn(tier string, uid types.UID, node Node) string {
	name := path.Join("/", node.CgroupRoot, cgroupTop, tier, "pod"+string(uid))
	if node.SystemdCgroup {
		return systemdName(name)
	}
	return name
}

// systemdName converts a path to systemd's form. The name of a slice contains the names of its parents, separated by
// hyphens, so that a hyphen within a name is replaced (kubelet: CgroupName.ToSystemd).
func systemdName(name string) string {
	dir, slice := "/", ""
	for part := range strings.SplitSeq(strings.Trim(name, "/"), "/") {
		slice += strings.ReplaceAll(part, "-", "_")
		dir = path.Join(dir, slice+".slice")
		slice += "-"
	}
	return dir
}

// PodResources are the limits of a pod's own cgroup. Nil means not set.
type PodResources struct {
	CPUShares *uint64
	CPUQuota  *int64
	CPUPeriod *uint64
	Memory    *int64
	Pids      *int64
	// HugePages maps a page size to its limit in bytes.
	HugePages map[string]uint64
}

// PodCgroup computes the limits of the pod's own cgroup: totals with overhead, and upper limits only if every container
// has one (kubelet: ResourceConfigForPod, podContainerManagerImpl.EnsureExists).
func PodCgroup(pod *v1.Pod, node Node) PodResources {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	limits, cpuLimited, memoryLimited := podspec.Limits(pod)
	all := calculated(requests, limits[v1.ResourceCPU], limits[v1.ResourceMemory])
	shares, quota := uint64(all.GetCpuShares()), all.GetCpuQuota()
	period, memory := uint64(cfsPeriod), all.GetMemoryLimitInBytes()
	r := PodResources{CPUShares: &shares, HugePages: hugePages(pod, node)}
	if node.PodPIDs > 0 {
		r.Pids = &node.PodPIDs
	}
	qos := podspec.QOSClass(pod)
	if qos == v1.PodQOSBestEffort {
		shares = minShares
		return r
	}
	if cpuLimited || qos == v1.PodQOSGuaranteed {
		r.CPUQuota, r.CPUPeriod = &quota, &period
	}
	if memoryLimited || qos == v1.PodQOSGuaranteed {
		r.Memory = &memory
	}
	return r
}

// AllPodsCgroup returns the limits of the cgroup that contains all pods, for the resources that all pods together may
// use (kubelet: getCgroupConfigInternal). Missing resources have no limit, except huge pages.
func AllPodsCgroup(limits v1.ResourceList, node Node) PodResources {
	r := PodResources{HugePages: map[string]uint64{}}
	if cpu, known := limits[v1.ResourceCPU]; known {
		r.CPUShares = new(uint64(milliToShares(cpu.MilliValue()))) // it is positive
	}
	if memory, known := limits[v1.ResourceMemory]; known {
		r.Memory = new(memory.Value())
	}
	if pids, known := limits[model.ResourcePIDs]; known {
		r.Pids = new(pids.Value())
	}
	for _, size := range node.HugePageSizes {
		r.HugePages[size] = hugePageLimit(limits, size)
	}
	return r
}

// hugePages returns a limit for every page size of the machine; zero for sizes that the pod does not request.
func hugePages(pod *v1.Pod, node Node) map[string]uint64 {
	limits := map[string]uint64{}
	totals := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, size := range node.HugePageSizes {
		limits[size] = hugePageLimit(totals, size)
	}
	return limits
}
