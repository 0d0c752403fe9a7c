package snapshot

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// minShares is the smallest number of cpu shares in the kernel, used without a request.
const minShares = 2

// resourcesInForce converts the kernel's values to quantities (kubelet: toKubeContainerResources). It returns nil if
// there are none.
func resourcesInForce(r *runtimeapi.LinuxContainerResources) *v1.ResourceRequirements {
	limits, requests := v1.ResourceList{}, v1.ResourceList{}
	if quota, period := r.GetCpuQuota(), r.GetCpuPeriod(); quota > 0 && period > 0 && quota*1000/period > 0 {
		limits[v1.ResourceCPU] = *resource.NewMilliQuantity(quota*1000/period, resource.DecimalSI)
	}
	if shares := r.GetCpuShares(); shares >= minShares {
		// Rounded up, because shares are rounded down when they are computed.
		requests[v1.ResourceCPU] = *resource.NewMilliQuantity((shares*1000+1023)/1024, resource.DecimalSI)
	}
	if memory := r.GetMemoryLimitInBytes(); memory > 0 {
		limits[v1.ResourceMemory] = *resource.NewQuantity(memory, resource.BinarySI)
	}
	if len(limits)+len(requests) == 0 {
		return nil
	}
	return &v1.ResourceRequirements{Limits: limits, Requests: requests}
}

// userOf converts the user of a container to the API type.
func userOf(u *runtimeapi.ContainerUser) *v1.ContainerUser {
	if u == nil {
		return nil
	}
	user := &v1.ContainerUser{}
	if l := u.GetLinux(); l != nil {
		user.Linux = &v1.LinuxContainerUser{
			UID:                l.GetUid(),
			GID:                l.GetGid(),
			SupplementalGroups: l.GetSupplementalGroups(),
		}
	}
	return user
}
