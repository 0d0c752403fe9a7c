package devices

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/podctl/podctl/runtime/devices/checkpoint"
	"github.com/podctl/podctl/runtime/model"
)

// resource is one resource with its devices.
type resource struct {
	// plugin is the plugin; nil while none is connected.
	plugin *plugin
	// devices are those that the plugin reported last, by ID. The map is never changed, only replaced, so a copy of the
	// resource can be read without the lock.
	devices map[string]device
	// reportedAt is when the plugin reported its devices last; zero if it has not since the start of the agent.
	reportedAt time.Time
	// announced is set once the connected plugin has reported its devices.
	announced bool
	// preStart is set if the plugin must be called before each start of a container.
	preStart bool
	// since is when the plugin connected or was gone. err is why it is gone.
	since time.Time
	err   string
	// expired is set once the plugin has been gone for some time (kubelet: endpointStopGracePeriod).
	expired bool
}

// device is one device.
type device struct {
	healthy bool
	// sick is set if the plugin has reported the device as unhealthy. It stays while the plugin is gone.
	sick bool
	// nodes are its NUMA nodes.
	nodes []int64
}

func (d device) equal(other device) bool {
	return d.healthy == other.healthy && d.sick == other.sick && slices.Equal(d.nodes, other.nodes)
}

// healthy returns the healthy devices in order.
func (r *resource) healthy() []string {
	sick := func(id string) bool { return !r.devices[id].healthy }
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.devices)), sick)
}

// lose notes that the plugin is gone: all its devices are unhealthy (kubelet: markResourceUnhealthy).
func (r *resource) lose(now time.Time, err error) {
	r.plugin, r.since, r.err = nil, now, err.Error()
	devices := map[string]device{}
	for id, d := range r.devices {
		devices[id] = device{sick: d.sick, nodes: d.nodes}
	}
	r.devices = devices
}

// preStartContainer calls the plugin, if it requires that before each start. A plugin that is gone is not called,
// unless it required that.
func (r *resource) preStartContainer(ctx context.Context, name string, ids []string) error {
	switch {
	case !r.preStart:
		return nil
	case r.plugin == nil:
		return fmt.Errorf("the device plugin of %s, which must be called before each start, is gone", name)
	}
	return r.plugin.preStart(ctx, ids)
}

// devicesOf translates the devices of a report.
func devicesOf(listed []*pluginapi.Device) map[string]device {
	devices := map[string]device{}
	for _, d := range listed {
		var nodes []int64
		for _, n := range d.GetTopology().GetNodes() {
			nodes = append(nodes, n.GetID())
		}
		healthy := d.GetHealth() == pluginapi.Healthy
		devices[d.GetID()] = device{healthy: healthy, sick: !healthy, nodes: nodes}
	}
	return devices
}

// perNUMA lists devices by NUMA node.
func (r *resource) perNUMA(ids []string) checkpoint.DevicesPerNUMA {
	all := checkpoint.DevicesPerNUMA{}
	for _, id := range ids {
		nodes := r.devices[id].nodes
		if len(nodes) == 0 {
			nodes = []int64{checkpoint.NoNUMA}
		}
		for _, n := range nodes {
			all[n] = append(all[n], id)
		}
	}
	return all
}

// state describes the resource.
func (r *resource) state(name string, uses []model.DeviceUse) model.DeviceResource {
	healthy := len(r.healthy())
	return model.DeviceResource{
		Name: name, Healthy: healthy, Unhealthy: len(r.devices) - healthy,
		Connected: r.plugin != nil, Since: r.since, Error: r.err, Uses: uses,
	}
}
