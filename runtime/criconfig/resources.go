package criconfig

import (
	"cmp"
	"maps"
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubernetes/pkg/kubelet/qos"

	"github.com/podctl/podctl/podspec"
)

// The kernel's limits for cpu shares and quota (pkg/kubelet/cm/helpers_linux.go).
const (
	minShares = 2
	maxShares = 262144
	// cfsPeriod is the length of a scheduling period, in microseconds.
	cfsPeriod = 100000
	// minQuota is the smallest quota per period that the kernel accepts, in microseconds.
	minQuota = 1000
)

func milliToShares(milli int64) int64 {
	if milli == 0 {
		return minShares
	}
	return min(max(milli*1024/1000, minShares), maxShares)
}

func milliToQuota(milli int64) int64 {
	if milli == 0 {
		return 0
	}
	return max(milli*cfsPeriod/1000, minQuota)
}

// Resources returns the limits that one container is created with (kubelet: generateLinuxContainerResources).
func Resources(pod *v1.Pod, ref podspec.ContainerRef, node Node) *runtimeapi.LinuxContainerResources {
	c := ref.Container
	cpuLimit, memoryLimit := limitOf(pod, c, v1.ResourceCPU), limitOf(pod, c, v1.ResourceMemory)
	r := calculated(c.Resources.Requests, cpuLimit, memoryLimit)
	// On a machine with unknown memory any request counts as negligible.
	memory := cmp.Or(node.MemoryBytes, math.MaxInt64)
	r.OomScoreAdj = int64(qos.GetContainerOOMScoreAdjust(pod, c, memory))
	for _, size := range node.HugePageSizes {
		r.HugepageLimits = append(r.HugepageLimits, &runtimeapi.HugepageLimit{
			PageSize: size, Limit: hugePageLimit(hugePageLimits(pod, c), size),
		})
	}
	r.Unified = unified(node)
	if node.SwapController && !node.CgroupV2 {
		// cgroup v1 counts memory and swap together, so this leaves no swap.
		r.MemorySwapLimitInBytes = r.GetMemoryLimitInBytes()
	}
	return r
}

// calculated converts requests and limits to the kernel's values.
func calculated(requests v1.ResourceList, cpuLimit, memoryLimit resource.Quantity) *runtimeapi.LinuxContainerResources {
	shares := milliToShares(cpuLimit.MilliValue())
	if q, ok := requests[v1.ResourceCPU]; ok {
		shares = milliToShares(q.MilliValue())
	}
	return &runtimeapi.LinuxContainerResources{
		CpuShares:          shares,
		CpuPeriod:          cfsPeriod,
		CpuQuota:           milliToQuota(cpuLimit.MilliValue()),
		MemoryLimitInBytes: memoryLimit.Value(),
	}
}

// limitOf returns a container's own limit, or the pod's if it has none.
func limitOf(pod *v1.Pod, c *v1.Container, name v1.ResourceName) resource.Quantity {
	if q, ok := c.Resources.Limits[name]; ok && !q.IsZero() {
		return q
	}
	if pod.Spec.Resources != nil {
		return pod.Spec.Resources.Limits[name]
	}
	return resource.Quantity{}
}

func hugePageLimits(pod *v1.Pod, c *v1.Container) v1.ResourceList {
	limits := v1.ResourceList{}
	if pod.Spec.Resources != nil {
		maps.Copy(limits, pod.Spec.Resources.Limits)
	}
	maps.Copy(limits, c.Resources.Limits)
	return limits
}

// hugePageLimit returns the limit for one page size, which is 2MB in the CRI and hugepages-2Mi in Kubernetes.
func hugePageLimit(limits v1.ResourceList, size string) uint64 {
	name := v1.ResourceName(v1.ResourceHugePagesPrefix + strings.TrimSuffix(size, "B") + "i")
	q := limits[name]
	return uint64(max(q.Value(), 0))
}

// unified returns settings of cgroup v2: an out-of-memory kill ends the whole container, and no swap is used.
func unified(node Node) map[string]string {
	if !node.CgroupV2 {
		return nil
	}
	settings := map[string]string{"memory.oom.group": "1"}
	if node.SwapController {
		settings["memory.swap.max"] = "0"
	}
	return settings
}

// sandboxResources returns the pod's totals without overhead, for runtimes that size the sandbox by them (kubelet:
// calculateSandboxResources).
func sandboxResources(pod *v1.Pod, node Node) *runtimeapi.LinuxContainerResources {
	opts := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	requests := resourcehelper.PodRequests(pod, opts)
	limits := resourcehelper.PodLimits(pod, opts)
	return sandboxTotals(requests, limits, node)
}

func overheadResources(pod *v1.Pod, node Node) *runtimeapi.LinuxContainerResources {
	if pod.Spec.Overhead == nil {
		return &runtimeapi.LinuxContainerResources{}
	}
	return sandboxTotals(pod.Spec.Overhead, pod.Spec.Overhead, node)
}

func sandboxTotals(requests, limits v1.ResourceList, node Node) *runtimeapi.LinuxContainerResources {
	r := calculated(requests, limits[v1.ResourceCPU], limits[v1.ResourceMemory])
	if node.CgroupV2 {
		r.Unified = map[string]string{"memory.oom.group": "1"}
	}
	return r
}
