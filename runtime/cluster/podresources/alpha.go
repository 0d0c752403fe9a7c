package podresources

import (
	"context"

	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// alphaServer serves version v1alpha1 of the API, which older monitoring agents read. It has all pods, also those that
// have ended, but only their regular containers, and no NUMA nodes (kubelet: v1alpha1PodResourcesServer).
type alphaServer struct {
	v1alpha1.UnimplementedPodResourcesListerServer

	of *Server
}

// List returns all pods.
func (s *alphaServer) List(
	ctx context.Context, _ *v1alpha1.ListPodResourcesRequest,
) (*v1alpha1.ListPodResourcesResponse, error) {
	pods, err := s.of.pods(ctx, func(*podspec.Desired) bool { return true })
	all := make([]*v1alpha1.PodResources, len(pods))
	for i, pod := range pods {
		all[i] = &v1alpha1.PodResources{Name: pod.name, Namespace: pod.Namespace}
		for c := range pod.Spec.Containers {
			name := pod.Spec.Containers[c].Name
			all[i].Containers = append(all[i].Containers, &v1alpha1.ContainerResources{
				Name: name, Devices: encodeAlpha(s.of.devices.DevicesOf(pod.UID, name)),
			})
		}
	}
	return &v1alpha1.ListPodResourcesResponse{PodResources: all}, err
}

// encodeAlpha encodes devices as encode does, but without their NUMA nodes.
func encodeAlpha(devices []model.Device) (all []*v1alpha1.ContainerDevices) {
	for _, d := range encode(devices) {
		all = append(all, &v1alpha1.ContainerDevices{ResourceName: d.GetResourceName(), DeviceIds: d.GetDeviceIds()})
	}
	return all
}
