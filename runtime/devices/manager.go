package devices

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/podctl/podctl/runtime/model"
)

// gonePeriod is how long the devices of a plugin that is gone count for the capacity of the node (kubelet:
// endpointStopGracePeriod).
const gonePeriod = 5 * time.Minute

// File is the record of allocated devices on disk.
type File interface {
	Read() ([]byte, error)
	Write(text []byte) error
}

// Settings are the settings of a Manager.
type Settings struct {
	// Dir is the directory of the sockets: that of the Manager, and those of the plugins.
	Dir  string
	File File
	// Users returns the pods that use resources of the node.
	Users func() ([]model.Admitted, error)
	// Changed is called when devices of a resource have changed. The context ends with the Manager.
	Changed func(ctx context.Context, resource string)
	Now     func() time.Time
	Log     *slog.Logger
}

// Manager manages the devices of all plugins. Its methods may be called concurrently.
type Manager struct {
	pluginapi.UnimplementedRegistrationServer
	settings Settings
	// serving is the context of connections to plugins.
	serving context.Context //nolint:containedctx // plugins register by calls that end before the connection

	mu        sync.Mutex
	resources map[string]*resource
	records   records
	// settled is set once all pods of the node are known.
	settled bool
}

// New returns a Manager with the record on disk. A damaged record is reported and does not count, as with a kubelet.
func New(s Settings) *Manager {
	m := &Manager{settings: s, resources: map[string]*resource{}}
	text, err := s.File.Read()
	var registered []string
	if err == nil {
		m.records, registered, err = decode(text)
	}
	if err != nil {
		m.records = records{}
		s.Log.Error("the record of allocated devices cannot be read: running containers keep their devices, "+
			"and others may get the same ones", "error", err.Error())
	}
	for _, name := range registered {
		m.resources[name] = &resource{since: s.Now()}
	}
	return m
}

// Settle is called once all pods of the node are known. Devices of other pods are then free.
func (m *Manager) Settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settled = true
}

// Resources describes the resources in order. If the pods of the node are known, it leaves out the devices of pods that
// have ended.
func (m *Manager) Resources() []model.DeviceResource {
	pods, err := m.uses()
	if err != nil {
		m.settings.Log.Warn("devices of pods that have ended are shown as used", "error", err.Error())
		pods = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	uses := m.records.usesOf(pods)
	var all []model.DeviceResource
	for _, name := range slices.Sorted(maps.Keys(m.resources)) {
		all = append(all, m.resources[name].state(name, uses[name]))
	}
	return all
}

// DevicesOf returns the devices that a container has, in order (kubelet: GetDevices).
func (m *Manager) DevicesOf(pod types.UID, container string) (all []model.Device) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := m.records.of(pod, container)
	for _, k := range own.sorted() {
		for _, id := range own[k].ids() {
			all = append(all, model.Device{Resource: k.resource, ID: id, NUMA: own[k].numa(id)})
		}
	}
	return all
}

// HealthyDevices returns all healthy devices, in order (kubelet: GetAllocatableDevices).
func (m *Manager) HealthyDevices() (all []model.Device) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.resources)) {
		for _, id := range m.resources[name].healthy() {
			all = append(all, model.Device{Resource: name, ID: id, NUMA: m.resources[name].devices[id].nodes})
		}
	}
	return all
}

// Capacity returns the resources that a Node shows: all devices, and the healthy ones (kubelet: GetCapacity).
func (m *Manager) Capacity() (capacity, allocatable v1.ResourceList) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	capacity, allocatable = v1.ResourceList{}, v1.ResourceList{}
	for name, r := range m.resources {
		capacity[v1.ResourceName(name)] = *quantity.NewQuantity(int64(len(r.devices)), quantity.DecimalSI)
		allocatable[v1.ResourceName(name)] = *quantity.NewQuantity(int64(len(r.healthy())), quantity.DecimalSI)
	}
	return capacity, allocatable
}

// expire forgets the devices of plugins that are gone for some time. The resource stays with no devices, so that the
// Node shows zero (kubelet: GetCapacity).
func (m *Manager) expire() {
	for _, r := range m.resources {
		if r.plugin == nil && m.settings.Now().Sub(r.since) > gonePeriod {
			r.devices, r.expired = nil, true
		}
	}
}

// connected notes that a plugin has connected. It replaces an earlier one of the same resource.
func (m *Manager) connected(name string, p *plugin) {
	m.mu.Lock()
	before := m.resources[name]
	next := &resource{plugin: p, preStart: p.options.GetPreStartRequired(), since: m.settings.Now()}
	if before != nil {
		next.devices, next.reportedAt = before.devices, before.reportedAt
	}
	m.resources[name] = next
	m.mu.Unlock()
	if before != nil && before.plugin != nil {
		_ = before.plugin.conn.Close() // Its watch ends.
	}
	m.settings.Log.Info("device plugin registered", "resource", name)
}

// report notes the devices that a plugin reports. Some plugins repeat a report that has not changed every few seconds.
func (m *Manager) report(name string, p *plugin, listed []*pluginapi.Device) {
	m.mu.Lock()
	r := m.resources[name]
	if r.plugin != p {
		m.mu.Unlock()
		return
	}
	next := devicesOf(listed)
	changed := !r.announced || !maps.EqualFunc(r.devices, next, device.equal)
	r.devices, r.reportedAt, r.announced = next, m.settings.Now(), true
	m.records.confirm(name, next)
	healthy := len(r.healthy())
	var err error
	if changed {
		err = m.write()
	}
	m.mu.Unlock()
	warn(m.settings.Log, err)
	if changed {
		m.settings.Log.Info("devices reported", "resource", name, "devices", len(listed), "healthy", healthy)
		m.settings.Changed(m.serving, name)
	}
}

// disconnected notes that the connection to a plugin has ended.
func (m *Manager) disconnected(name string, p *plugin, cause error) {
	m.mu.Lock()
	r := m.resources[name]
	if r.plugin != p {
		m.mu.Unlock()
		return
	}
	r.lose(m.settings.Now(), cause)
	err := m.write()
	m.mu.Unlock()
	m.settings.Log.Warn("device plugin is gone", "resource", name, "error", cause.Error())
	warn(m.settings.Log, err)
	m.settings.Changed(m.serving, name)
}

func warn(log *slog.Logger, err error) {
	if err != nil {
		log.Error("the record of allocated devices cannot be written", "error", err.Error())
	}
}

// write writes the record. The caller holds mu.
func (m *Manager) write() error {
	registered := map[string][]string{}
	for name, r := range m.resources {
		if !r.expired {
			registered[name] = append([]string{}, r.healthy()...)
		}
	}
	text, err := encode(m.records, registered)
	if err != nil {
		return err
	}
	return m.settings.File.Write(text)
}
