package devices

import (
	"context"
	"fmt"
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
	healthy := len(r.healthy())
	var err error
	if changed {
		err = m.write()
	}
	m.mu.Unlock()
	m.warn(err)
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
	m.warn(err)
	m.settings.Changed(m.serving, name)
}

func (m *Manager) warn(err error) {
	if err != nil {
		m.settings.Log.Error("the record of allocated devices cannot be written", "error", err.Error())
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

// uses returns the pods that use their devices; see chooser. The caller does not hold mu.
func (m *Manager) uses() (map[types.UID]bool, error) {
	m.mu.Lock()
	settled := m.settled
	m.mu.Unlock()
	if !settled {
		return nil, nil
	}
	users, err := m.settings.Users()
	if err != nil {
		return nil, err
	}
	uses := map[types.UID]bool{}
	for _, u := range users {
		uses[u.Pod.UID] = u.Terminating
	}
	return uses, nil
}

// ChooseDevices returns the devices that the containers of a pod have or can get. It changes nothing.
func (m *Manager) ChooseDevices(ctx context.Context, request *model.DeviceRequest) (model.Devices, error) {
	uses, err := m.uses()
	if err != nil {
		return model.Devices{}, err
	}
	c := &chooser{uses: uses, pod: request.Pod, prefer: m.prefer}
	m.mu.Lock() // The choice uses copies, because it may call plugins.
	m.expire()
	c.resources, c.records = map[string]*resource{}, maps.Clone(m.records)
	for name, r := range m.resources {
		c.resources[name] = new(*r)
	}
	m.mu.Unlock()
	return c.choose(ctx, request), nil
}

// prefer calls the plugin of a resource.
func (m *Manager) prefer(ctx context.Context, name string, available, must []string, size int64) ([]string, error) {
	p, err := m.plugin(name)
	if err != nil {
		return nil, err
	}
	return p.prefer(ctx, available, must, size)
}

// plugin returns the plugin of a resource.
func (m *Manager) plugin(name string) (*plugin, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.resources[name]; r != nil && r.plugin != nil {
		return r.plugin, nil
	}
	return nil, fmt.Errorf("the device plugin of %s is gone", name)
}

// AllocateDevices allocates devices that were chosen for a container, and records them (kubelet:
// allocateContainerResources).
func (m *Manager) AllocateDevices(ctx context.Context, pod types.UID, container string, sets []model.DeviceSet) error {
	uses, err := m.uses()
	if err != nil {
		return err
	}
	for i := range sets {
		if err = m.allocate(ctx, key{pod, container, sets[i].Resource}, sets[i].IDs, uses); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) allocate(ctx context.Context, k key, ids []string, uses map[types.UID]bool) error {
	p, reserved, err := m.reserve(k, ids, uses)
	if err != nil {
		return err
	}
	response, err := p.allocate(ctx, ids)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records[k] != reserved {
		return fmt.Errorf("%w: a newer call allocates %s for container %s",
			model.ErrDevicesTaken, k.resource, k.container)
	}
	if err == nil {
		m.records[k] = &record{reserved.devices, response}
		err = m.write()
	}
	if err != nil {
		delete(m.records, k)
		return fmt.Errorf("allocating %s for container %s: %w", k.resource, k.container, err)
	}
	return nil
}

// reserve reserves devices for a container while their plugin is called. It drops the records of pods that have ended.
// A newer call for the same container replaces the reservation, for example after the process that made the first call
// was killed.
func (m *Manager) reserve(k key, ids []string, uses map[types.UID]bool) (*plugin, *record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.resources[k.resource]
	if r == nil || r.plugin == nil {
		return nil, nil, fmt.Errorf("%w: the device plugin of %s is gone", model.ErrDevicesTaken, k.resource)
	}
	maps.DeleteFunc(m.records, func(other key, rec *record) bool {
		_, used := uses[other.pod]
		return uses != nil && !used && other.pod != k.pod && rec.response != nil
	})
	for _, id := range ids {
		if !r.devices[id].healthy {
			return nil, nil, fmt.Errorf("%w: device %q of %s is not healthy", model.ErrDevicesTaken, id, k.resource)
		}
	}
	for other, rec := range m.records {
		if other.resource != k.resource || other.pod == k.pod {
			continue
		}
		if slices.ContainsFunc(rec.ids(), func(id string) bool { return slices.Contains(ids, id) }) {
			return nil, nil, fmt.Errorf("%w: another pod has devices of %s", model.ErrDevicesTaken, k.resource)
		}
	}
	reserved := &record{devices: r.perNUMA(ids)}
	m.records[k] = reserved
	return r.plugin, reserved, nil
}

// PrepareDevices prepares the devices of a container for its start, and returns what plugins add to its message
// (kubelet: GetDeviceRunContainerOptions).
func (m *Manager) PrepareDevices(ctx context.Context, pod types.UID, container string) (*model.DeviceConfig, error) {
	m.mu.Lock()
	own := m.records.of(pod, container)
	m.mu.Unlock()
	var responses []*pluginapi.ContainerAllocateResponse
	for _, k := range own.sorted() {
		if err := m.preStart(ctx, k.resource, own[k].ids()); err != nil {
			return nil, err
		}
		responses = append(responses, own[k].response)
	}
	return configOf(responses), nil
}

// preStart calls the plugin of a resource, if it requires that before each start. A plugin that is gone is not called,
// unless it required that.
func (m *Manager) preStart(ctx context.Context, name string, ids []string) error {
	m.mu.Lock()
	var r resource
	if known := m.resources[name]; known != nil {
		r = *known
	}
	m.mu.Unlock()
	switch {
	case !r.preStart:
		return nil
	case r.plugin == nil:
		return fmt.Errorf("the device plugin of %s, which must be called before each start, is gone", name)
	}
	return r.plugin.preStart(ctx, ids)
}
