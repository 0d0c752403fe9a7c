package podspec

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
)

// Limits returns the sum of a pod's limits, and whether the pod is limited in cpu and in memory. It is limited if the
// pod itself or every container has a limit (kubelet: ResourceConfigForPod).
func Limits(pod *v1.Pod) (limits v1.ResourceList, cpu, memory bool) {
	cpu, memory = true, true
	limits = resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{
		ContainerFn: func(list v1.ResourceList, _ resourcehelper.ContainerType) {
			cpu = cpu && !list.Cpu().IsZero()
			memory = memory && !list.Memory().IsZero()
		},
	})
	if own := pod.Spec.Resources; own != nil {
		cpu = cpu || !own.Limits.Cpu().IsZero()
		memory = memory || !own.Limits.Memory().IsZero()
	}
	return limits, cpu, memory
}

// Totals returns the cpu and memory that all containers of a pod share in its cgroup: the request of cpu, and a limit
// if Limits finds one.
func Totals(pod *v1.Pod) v1.ResourceRequirements {
	sum, cpu, memory := Limits(pod)
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	all := v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: *requests.Cpu()}, Limits: v1.ResourceList{},
	}
	if cpu {
		all.Limits[v1.ResourceCPU] = *sum.Cpu()
	}
	if memory {
		all.Limits[v1.ResourceMemory] = *sum.Memory()
	}
	return all
}

// QOSClass returns the pod's quality of service class (kubelet: qos.GetPodQOS).
func QOSClass(pod *v1.Pod) v1.PodQOSClass { return qos.ComputePodQOS(pod) }

// IsHugePages reports whether a resource is memory in pages of one size.
func IsHugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

// IsExtendedResource reports whether a resource is not one of Kubernetes itself: a device of a node, named by its
// vendor (API: IsExtendedResourceName).
func IsExtendedResource(name v1.ResourceName) bool {
	text := string(name)
	native := !strings.Contains(text, "/") || strings.Contains(text, v1.ResourceDefaultNamespacePrefix)
	return !native && !strings.HasPrefix(text, v1.DefaultResourceRequestsPrefix)
}
