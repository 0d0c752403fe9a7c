package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Below these amounts of cpu, in thousandths of a core, the kernel makes no difference, so the requested amount is
// shown (kubelet: cm.MinShares, cm.MinMilliCPULimit).
const (
	minMilliRequest = 2
	minMilliLimit   = 10
)

// addResources adds the allowed and the effective resources of a container, its user and its mounts (kubelet:
// convertToAPIContainerStatuses). The allowed resources of a pod of the API server are those of its manifest, also
// while a resize is in progress.
func (r *reporter) addResources(s *v1.ContainerStatus, ref podspec.ContainerRef) {
	s.VolumeMounts = r.volumeMounts(ref.Container)
	c := r.newestStarted(ref.Name)
	if c == nil {
		return
	}
	allocated := r.allocated(ref)
	s.AllocatedResources = allocated.Requests
	if r.cluster != nil {
		s.AllocatedResources = ref.Resources.DeepCopy().Requests
	}
	s.Resources = &allocated
	s.User = c.User
	if c.State == model.Running {
		s.Resources = inForce(allocated, c.Resources)
	}
}

// allocated returns the last resources given to a running container, and for other containers those of the manifest.
func (r *reporter) allocated(ref podspec.ContainerRef) v1.ResourceRequirements {
	c, actuated := r.Newest(ref.Name), r.Observed.Memory.Actuated
	if c != nil && c.State == model.Running && actuated != nil {
		if applied, known := actuated.Containers[ref.Name]; known {
			return *applied.DeepCopy()
		}
	}
	return *ref.Resources.DeepCopy()
}

// inForce returns the allocated resources with the values of the runtime, if there are any. The runtime has no memory
// request, and no resources other than cpu and memory.
func inForce(allocated v1.ResourceRequirements, reported *v1.ResourceRequirements) *v1.ResourceRequirements {
	r := allocated.DeepCopy()
	if reported == nil {
		return r
	}
	replaceCPU(r.Limits, reported.Limits, minMilliLimit)
	replaceCPU(r.Requests, reported.Requests, minMilliRequest)
	if memory, ok := reported.Limits[v1.ResourceMemory]; ok && r.Limits != nil {
		r.Limits[v1.ResourceMemory] = memory
	}
	return r
}

func replaceCPU(list, reported v1.ResourceList, least int64) {
	cpu, ok := reported[v1.ResourceCPU]
	if ok && list != nil && max(cpu.MilliValue(), list.Cpu().MilliValue()) > least {
		list[v1.ResourceCPU] = cpu
	}
}

// volumeMounts returns a container's mounts as in its manifest.
func (r *reporter) volumeMounts(spec *v1.Container) []v1.VolumeMountStatus {
	var mounts []v1.VolumeMountStatus
	for i := range spec.VolumeMounts {
		m := &spec.VolumeMounts[i]
		s := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := r.recursiveMode(m.RecursiveReadOnly)
			s.RecursiveReadOnly = &mode
		}
		mounts = append(mounts, s)
	}
	return mounts
}

// recursiveMode reports whether mounts below a read-only mount are read-only too. Not every handler supports that
// (kubelet: resolveRecursiveReadOnly).
func (r *reporter) recursiveMode(mode *v1.RecursiveReadOnlyMode) v1.RecursiveReadOnlyMode {
	able := r.Observed.Runtime
	if mode == nil || *mode == v1.RecursiveReadOnlyDisabled || !slices.Contains(able.RecursiveReadOnly, able.Handler) {
		return v1.RecursiveReadOnlyDisabled
	}
	return v1.RecursiveReadOnlyEnabled
}

// addPodResources adds the resources of the whole pod (kubelet: convertToAPIPodLevelResourcesStatus).
func (r *reporter) addPodResources(s *v1.PodStatus) {
	pod := r.allocatedPod()
	s.AllocatedResources = resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	actuated := s.AllocatedResources
	if r.cluster != nil {
		s.AllocatedResources = resourcehelper.PodRequests(r.Manifest, resourcehelper.PodResourcesOptions{})
	}
	s.Resources = &v1.ResourceRequirements{}
	if own := pod.Spec.Resources; own != nil {
		s.Resources = own.DeepCopy()
	}
	if s.Phase == v1.PodRunning {
		r.addPodInForce(s.Resources, pod, actuated)
		return
	}
	s.Resources.Requests = actuated.DeepCopy()
	s.Resources.Limits = resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
}

// allocatedPod returns the pod with the resources given to it and its containers.
func (r *reporter) allocatedPod() *v1.Pod {
	pod := r.Manifest.DeepCopy()
	for _, ref := range podspec.Containers(pod) {
		ref.Resources = r.allocated(ref)
	}
	if actuated := r.Observed.Memory.Actuated; actuated != nil && r.Active != "" {
		pod.Spec.Resources = actuated.Pod.DeepCopy()
	}
	return pod
}

// addPodInForce adds the effective resources of a running pod: for cpu and limits, those of its cgroup, if it has its
// own.
func (r *reporter) addPodInForce(to *v1.ResourceRequirements, pod *v1.Pod, requests v1.ResourceList) {
	if to.Requests == nil {
		to.Requests = v1.ResourceList{}
	}
	if to.Limits == nil {
		to.Limits = v1.ResourceList{}
	}
	if memory, ok := requests[v1.ResourceMemory]; ok && to.Requests.Memory().IsZero() {
		to.Requests[v1.ResourceMemory] = memory
	}
	if exists := r.Observed.CgroupExists; exists == nil || !*exists {
		return
	}
	replaceCPU(to.Requests, requests, minMilliRequest)
	limits, cpu, memory := podspec.Limits(pod)
	if cpu {
		replaceCPU(to.Limits, limits, minMilliLimit)
	}
	if memory {
		to.Limits[v1.ResourceMemory] = limits[v1.ResourceMemory]
	}
}
