package devices

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/podctl/podctl/runtime/model"
)

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

// dropEnded drops the records of pods that have ended, and returns the pods that use their devices; see chooser. A pod
// can exist again with the same uid: that of a file derives from its name. A record that is made meanwhile stays,
// because its pod may be newer than the list of pods.
func (m *Manager) dropEnded() (map[types.UID]bool, error) {
	m.mu.Lock()
	before := maps.Clone(m.records)
	m.mu.Unlock()
	uses, err := m.uses()
	if err != nil || uses == nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.records, func(k key, r *record) bool {
		_, used := uses[k.pod]
		return !used && r.response != nil && before[k] == r
	})
	return uses, nil
}

// ChooseDevices returns the devices that the containers of a pod have or can get. It allocates none.
func (m *Manager) ChooseDevices(ctx context.Context, request *model.DeviceRequest) (model.Devices, error) {
	uses, err := m.dropEnded()
	if err != nil {
		return model.Devices{}, err
	}
	c := &chooser{uses: uses, request: request, prefer: m.prefer}
	m.mu.Lock() // The choice uses copies, because it may call plugins.
	m.expire()
	c.resources, c.records = map[string]*resource{}, maps.Clone(m.records)
	for name, r := range m.resources {
		c.resources[name] = new(*r)
	}
	m.mu.Unlock()
	chosen := c.choose(ctx)
	return chosen, ctx.Err() // An interrupted call of a plugin does not reject the pod.
}

// prefer calls the plugin of a resource. If the plugin registers again during the call, it is called again, because the
// first connection is then closed.
func (m *Manager) prefer(ctx context.Context, name string, available, must []string, size int64) ([]string, error) {
	for {
		p := m.resource(name).plugin
		if p == nil {
			return nil, fmt.Errorf("the device plugin of %s is gone", name)
		}
		ids, err := p.prefer(ctx, available, must, size)
		if err == nil || m.resource(name).plugin == p {
			return ids, err
		}
	}
}

// resource returns a resource as it is now; empty if no plugin has registered it.
func (m *Manager) resource(name string) resource {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.resources[name]; r != nil {
		return *r
	}
	return resource{}
}

// AllocateDevices allocates devices that were chosen for a container, and records them (kubelet:
// allocateContainerResources).
func (m *Manager) AllocateDevices(ctx context.Context, pod types.UID, container string, sets []model.DeviceSet) error {
	for i := range sets {
		if err := m.allocate(ctx, key{pod, container, sets[i].Resource}, sets[i].IDs); err != nil {
			return err
		}
	}
	return nil
}

// Keep drops the records of a pod that its request does not contain, once their containers do not run any more: the
// manifest of a pod from a file can change, and a pod can be deleted. It does not wait for Settings.Changed.
func (m *Manager) Keep(ctx context.Context, request *model.DeviceRequest, runs func(container string) bool) {
	freed := map[string]bool{}
	m.mu.Lock()
	for k, r := range m.records {
		wanted := request.Amount(k.container, k.resource) > 0
		if k.pod == request.Pod && r.response != nil && !wanted && !runs(k.container) {
			delete(m.records, k)
			freed[k.resource] = true
		}
	}
	var err error
	if len(freed) > 0 {
		err = m.write()
	}
	m.mu.Unlock()
	warn(m.settings.Log, err)
	for name := range freed {
		go m.settings.Changed(ctx, name)
	}
}

func (m *Manager) allocate(ctx context.Context, k key, ids []string) error {
	p, reserved, err := m.reserve(k, ids)
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
		m.records[k] = &record{devices: reserved.devices, response: response, known: true}
		err = m.write()
	}
	if now := m.resources[k.resource].plugin; err != nil && now != nil && now != p {
		delete(m.records, k)
		return fmt.Errorf("%w: the device plugin of %s has registered again", model.ErrDevicesTaken, k.resource)
	}
	if err != nil {
		delete(m.records, k)
		return fmt.Errorf("allocating %s for container %s: %w", k.resource, k.container, err)
	}
	return nil
}

// reserve reserves devices for a container while their plugin is called. A newer call for the same container replaces
// the reservation, for example after the process that made the first call was killed.
func (m *Manager) reserve(k key, ids []string) (*plugin, *record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.resources[k.resource]
	if r == nil || r.plugin == nil {
		return nil, nil, fmt.Errorf("%w: the device plugin of %s is gone", model.ErrDevicesTaken, k.resource)
	}
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

// PrepareDevices prepares the devices of a container before it starts, and returns what plugins add to its
// configuration (kubelet: GetDeviceRunContainerOptions). It returns ErrDevicesTaken if the container has no devices.
func (m *Manager) PrepareDevices(ctx context.Context, pod types.UID, container string) (*model.DeviceConfig, error) {
	m.mu.Lock()
	own := m.records.of(pod, container)
	m.mu.Unlock()
	if len(own) == 0 {
		return nil, fmt.Errorf("%w: container %s has none", model.ErrDevicesTaken, container)
	}
	var responses []*pluginapi.ContainerAllocateResponse
	for _, k := range own.sorted() {
		r := m.resource(k.resource)
		if err := r.preStartContainer(ctx, k.resource, own[k].ids()); err != nil {
			return nil, err
		}
		responses = append(responses, own[k].response)
	}
	return configOf(responses), nil
}
