package podresources

import (
	"context"
	"fmt"
	"net"
	"path"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/grpcapi"
	"github.com/podctl/podctl/runtime/model"
)

// requestMax limits the bytes of a request, and streamsMax the concurrent requests of a connection.
const (
	requestMax = 64 << 10
	streamsMax = 16
)

// Server serves the API.
type Server struct {
	podresourcesapi.UnimplementedPodResourcesListerServer

	agent   grpcapi.Agent
	devices Devices
	// name returns the name of a pod in the API.
	name func(*podspec.Desired) string
}

// Devices are the devices of a machine. Package devices implements it.
type Devices interface {
	// DevicesOf returns the devices that a container has.
	DevicesOf(pod types.UID, container string) []model.Device
	// HealthyDevices returns all healthy devices, also those that containers have.
	HealthyDevices() []model.Device
}

// New returns a server of an agent's pods. name returns the name of a pod in the API.
func New(agent grpcapi.Agent, devices Devices, name func(*podspec.Desired) string) *Server {
	return &Server{agent: agent, devices: devices, name: name}
}

// Counter counts the response to a request by the version of the API, for example "v1", the method and the error.
type Counter func(version, method string, err error)

// Serve serves a listener until the context ends. It does not count requests above the rate limit.
func (s *Server) Serve(ctx context.Context, l net.Listener, count Counter) error {
	register := func(r grpc.ServiceRegistrar) {
		podresourcesapi.RegisterPodResourcesListerServer(r, s)
		v1alpha1.RegisterPodResourcesListerServer(r, &alphaServer{of: s})
	}
	return grpcapi.Serve(ctx, l, register, grpc.ChainUnaryInterceptor(count.intercept),
		grpc.MaxRecvMsgSize(requestMax), grpc.MaxConcurrentStreams(streamsMax))
}

// intercept counts a response. The full name of a method begins with the version.
func (count Counter) intercept(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, answer grpc.UnaryHandler,
) (any, error) {
	response, err := answer(ctx, request)
	service, method := path.Split(info.FullMethod)
	version, _, _ := strings.Cut(strings.Trim(service, "/"), ".")
	count(version, method, err)
	return response, err
}

// List returns the pods that have not ended.
func (s *Server) List(
	ctx context.Context, _ *podresourcesapi.ListPodResourcesRequest,
) (*podresourcesapi.ListPodResourcesResponse, error) {
	pods, err := s.active(ctx, func(*podspec.Desired) bool { return true })
	return &podresourcesapi.ListPodResourcesResponse{PodResources: pods}, err
}

// Get returns a pod that has not ended.
func (s *Server) Get(
	ctx context.Context, r *podresourcesapi.GetPodResourcesRequest,
) (*podresourcesapi.GetPodResourcesResponse, error) {
	pods, err := s.active(ctx, func(d *podspec.Desired) bool {
		return d.Pod.Namespace == r.GetPodNamespace() && s.name(d) == r.GetPodName()
	})
	if err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("pod %s in namespace %s not found", r.GetPodName(), r.GetPodNamespace())
	}
	return &podresourcesapi.GetPodResourcesResponse{PodResources: pods[0]}, nil
}

// GetAllocatableResources returns the healthy devices. The node has no exclusive processors and memory.
func (s *Server) GetAllocatableResources(
	context.Context, *podresourcesapi.AllocatableResourcesRequest,
) (*podresourcesapi.AllocatableResourcesResponse, error) {
	return &podresourcesapi.AllocatableResourcesResponse{Devices: encode(s.devices.HealthyDevices())}, nil
}

// encode encodes devices: each alone, and once for each of its NUMA nodes (kubelet:
// containerDevicesFromResourceDeviceInstances).
func encode(devices []model.Device) (all []*podresourcesapi.ContainerDevices) {
	for _, d := range devices {
		if len(d.NUMA) == 0 {
			all = append(all, &podresourcesapi.ContainerDevices{ResourceName: d.Resource, DeviceIds: []string{d.ID}})
		}
		for _, node := range d.NUMA {
			all = append(all, &podresourcesapi.ContainerDevices{
				ResourceName: d.Resource, DeviceIds: []string{d.ID},
				Topology: &podresourcesapi.TopologyInfo{Nodes: []*podresourcesapi.NUMANode{{ID: node}}},
			})
		}
	}
	return all
}

// named is a pod with its name in the API.
type named struct {
	*v1.Pod

	name string
}

// pods returns the wanted pods with their statuses.
func (s *Server) pods(ctx context.Context, wanted func(*podspec.Desired) bool) ([]named, error) {
	shown, err := s.agent.Shown(ctx)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	var some []*podspec.Desired
	for _, d := range shown {
		if wanted(d) {
			some = append(some, d)
		}
	}
	if len(some) == 0 {
		return nil, nil
	}
	pods, err := s.agent.List(ctx, some)
	if len(pods) != len(some) {
		return nil, status.Error(codes.Unavailable, fmt.Sprint(err))
	}
	all := make([]named, len(pods))
	for i, pod := range pods {
		all[i] = named{Pod: pod, name: s.name(some[i])}
	}
	return all, nil
}

// active returns the wanted pods that have not ended (kubelet: GetActivePods).
func (s *Server) active(
	ctx context.Context, wanted func(*podspec.Desired) bool,
) ([]*podresourcesapi.PodResources, error) {
	pods, err := s.pods(ctx, wanted)
	var all []*podresourcesapi.PodResources
	for _, pod := range pods {
		if !model.IsOver(&pod.Status) {
			all = append(all, s.resourcesOf(pod))
		}
	}
	return all, err
}

// resourcesOf returns the resources of a pod: its sidecars, and then its regular containers.
func (s *Server) resourcesOf(pod named) *podresourcesapi.PodResources {
	r := &podresourcesapi.PodResources{Name: pod.name, Namespace: pod.Namespace}
	for _, ref := range podspec.Containers(pod.Pod) {
		if ref.Type == podspec.Sidecar || ref.Type == podspec.Regular {
			r.Containers = append(r.Containers, &podresourcesapi.ContainerResources{
				Name: ref.Name, Devices: encode(s.devices.DevicesOf(pod.UID, ref.Name)),
			})
		}
	}
	return r
}
