package model

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
)

// DeviceRequest are the numbers of devices that a pod needs.
type DeviceRequest struct {
	Pod types.UID `json:"pod"`
	// Containers are those that need devices, in the order in which a kubelet allocates them.
	Containers []DeviceNeed `json:"containers"`
}

// DeviceNeed are the numbers of devices that one container needs.
type DeviceNeed struct {
	Container string `json:"container"`
	// Amounts are the numbers of devices by resource.
	Amounts map[string]int64 `json:"amounts"`
	// Ends is set for an init container that ends before others start, which may then have its devices.
	Ends bool `json:"ends,omitempty"`
}

// Resources returns the resources of the need in order.
func (n *DeviceNeed) Resources() []string { return slices.Sorted(maps.Keys(n.Amounts)) }

// DeviceRequestOf returns the extended resources in the limits of a pod's containers, which equal the requests
// (kubelet: allocateContainerResources). It has no containers if the pod needs none.
func DeviceRequestOf(pod *v1.Pod) DeviceRequest {
	request := DeviceRequest{Pod: pod.UID}
	for _, ref := range podspec.Containers(pod) {
		amounts := map[string]int64{}
		for name, amount := range ref.Resources.Limits {
			if podspec.IsExtendedResource(name) && amount.Value() > 0 {
				amounts[string(name)] = amount.Value()
			}
		}
		if len(amounts) > 0 {
			request.Containers = append(request.Containers, DeviceNeed{
				Container: ref.Name, Amounts: amounts, Ends: ref.Type == podspec.Init,
			})
		}
	}
	return request
}

// Needs reports whether a container needs devices of a resource.
func (r *DeviceRequest) Needs(resource string) bool {
	return slices.ContainsFunc(r.Containers, func(n DeviceNeed) bool { return n.Amounts[resource] > 0 })
}

// Amount returns the number of devices of a resource that a container needs.
func (r *DeviceRequest) Amount(container, resource string) int64 {
	for i := range r.Containers {
		if r.Containers[i].Container == container {
			return r.Containers[i].Amounts[resource]
		}
	}
	return 0
}

// Devices are the devices for the containers of a pod.
type Devices struct {
	// Sets are the devices that a container has or can get, by container.
	Sets map[string][]DeviceSet `json:"sets,omitempty"`
	// Faults are the reasons why containers cannot get their devices now, by container.
	Faults map[string]DeviceFault `json:"faults,omitempty"`
}

// DeviceSet are devices of one resource.
type DeviceSet struct {
	Resource string   `json:"resource"`
	IDs      []string `json:"ids"`
	// Allocated is set if the container has the devices already.
	Allocated bool `json:"allocated,omitempty"`
}

// Of returns the devices that a container has or can get.
func (d *Devices) Of(container string) []DeviceSet {
	if d == nil {
		return nil
	}
	return d.Sets[container]
}

// Unallocated returns the devices that a container can get and does not have yet.
func (d *Devices) Unallocated(container string) []DeviceSet {
	return slices.DeleteFunc(slices.Clone(d.Of(container)), func(s DeviceSet) bool { return s.Allocated })
}

// Rejecting returns the first fault for which a kubelet rejects a new pod; nil if there is none.
func (d *Devices) Rejecting() *DeviceFault {
	if d == nil {
		return nil
	}
	for _, container := range slices.Sorted(maps.Keys(d.Faults)) {
		if f := d.Faults[container]; f.Rejects {
			return &f
		}
	}
	return nil
}

// DeviceText lists devices: example.com/gpu=0,1 example.com/fpga=a.
func DeviceText(sets []DeviceSet) string {
	texts := make([]string, 0, len(sets))
	for i := range sets {
		texts = append(texts, sets[i].Resource+"="+strings.Join(sets[i].IDs, ","))
	}
	return strings.Join(texts, " ")
}

// DeviceFault is why a container cannot get devices of a resource.
type DeviceFault struct {
	Resource string `json:"resource"`
	// Message is the text for users, and Status the error of a kubelet. An empty Status is the same as Message.
	Message string `json:"message"`
	Status  string `json:"status,omitempty"`
	// Rejects is set if a kubelet rejects a new pod for this reason. Otherwise the pod waits: for a plugin that has not
	// registered, or for devices of pods that end.
	Rejects bool `json:"rejects,omitempty"`
}

// DeviceManager gives devices of plugins to containers. The agent has one, and other processes call it.
type DeviceManager interface {
	// ChooseDevices returns the devices that the containers of a pod have or can get. It allocates none.
	ChooseDevices(ctx context.Context, request *DeviceRequest) (Devices, error)
	// AllocateDevices allocates devices that were chosen for a container. It returns ErrDevicesTaken if they are not
	// available any more.
	AllocateDevices(ctx context.Context, pod types.UID, container string, sets []DeviceSet) error
	// PrepareDevices prepares the devices of a container before it starts, and returns what they add to its
	// configuration. It returns ErrDevicesTaken if the container has no devices any more.
	PrepareDevices(ctx context.Context, pod types.UID, container string) (*DeviceConfig, error)
}

// ErrDevicesTaken reports that devices are not available any more. The caller chooses again.
var ErrDevicesTaken = errors.New("devices are not available any more")

// DeviceResource is the state of one resource of a device plugin.
type DeviceResource struct {
	Name string `json:"name"`
	// Healthy and Unhealthy are the numbers of devices. Devices of a plugin that is gone are unhealthy.
	Healthy   int `json:"healthy"`
	Unhealthy int `json:"unhealthy"`
	// Connected is set while the plugin reports its devices. Since is when that began or ended.
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since"`
	// Error is why the connection ended.
	Error string `json:"error,omitempty"`
	// Uses are the containers that have devices.
	Uses []DeviceUse `json:"uses,omitempty"`
}

// Device is one device with its NUMA nodes.
type Device struct {
	Resource, ID string
	NUMA         []int64
}

// DeviceUse are the devices that a container has.
type DeviceUse struct {
	Pod       types.UID `json:"pod"`
	Container string    `json:"container"`
	IDs       []string  `json:"ids"`
}

// DeviceConfig is what device plugins add to the message of a container (kubelet: DeviceRunContainerOptions). Lists are
// in a fixed order.
type DeviceConfig struct {
	Env         []DeviceEnv       `json:"env,omitempty"`
	Mounts      []DeviceMount     `json:"mounts,omitempty"`
	Nodes       []DeviceNode      `json:"nodes,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// CDI are the fully qualified names of CDI devices.
	CDI []string `json:"cdi,omitempty"`
}

// DeviceEnv is a variable of the environment.
type DeviceEnv struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// DeviceMount is a path of the host that is mounted into a container.
type DeviceMount struct {
	HostPath      string `json:"hostPath"`
	ContainerPath string `json:"containerPath"`
	ReadOnly      bool   `json:"readOnly,omitempty"`
}

// DeviceNode is a device file.
type DeviceNode struct {
	HostPath      string `json:"hostPath"`
	ContainerPath string `json:"containerPath"`
	// Permissions are letters of r, w and m.
	Permissions string `json:"permissions,omitempty"`
}
