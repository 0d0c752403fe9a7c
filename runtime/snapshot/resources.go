package snapshot

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// minShares are the fewest shares of cpu that the kernel knows, for no request.
const minShares = 2

// resourcesInForce turns the kernel's figures into quantities (kubelet:
// toKubeContainerResources). Nil means that there are none.
func resourcesInForce(r *runtimeapi.LinuxContainerResources) *v1.ResourceRequirements {
	limits, requests := v1.ResourceList{}, v1.ResourceList{}
	if quota, period := r.GetCpuQuota(), r.GetCpuPeriod(); quota > 0 && period > 0 && quota*1000/period > 0 {
		limits[v1.ResourceCPU] = *resource.NewMilliQuantity(quota*1000/period, resource.DecimalSI)
	}
	if shares := r.GetCpuShares(); shares >= minShares {
		// Rounded up, as shares are rounded down when they are made.
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

// userOf is the user of a container as the API has it.
func userOf(u *runtimeapi.ContainerUser) *v1.ContainerUser {
	if u == nil {
		return nil
	}
	user := &v1.ContainerUser{}
	if l := u.GetLinux(); l != nil {
		user.Linux = &v1.LinuxContainerUser{UID: l.GetUid(), GID: l.GetGid(), SupplementalGroups: l.GetSupplementalGroups()}
	}
	return user
}
