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

// QOSClass returns the pod's quality of service class (kubelet: qos.GetPodQOS).
func QOSClass(pod *v1.Pod) v1.PodQOSClass { return qos.ComputePodQOS(pod) }

// IsExtendedResource reports whether a resource is not one of Kubernetes itself: a device of a node, named by its
// vendor (API: IsExtendedResourceName).
func IsExtendedResource(name v1.ResourceName) bool {
	text := string(name)
	native := !strings.Contains(text, "/") || strings.Contains(text, v1.ResourceDefaultNamespacePrefix)
	return !native && !strings.HasPrefix(text, v1.DefaultResourceRequestsPrefix)
}
