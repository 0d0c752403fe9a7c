package devices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/podctl/podctl/runtime/devices/checkpoint"
	"github.com/podctl/podctl/runtime/model"
)

// key identifies the devices of one resource that a container has.
type key struct {
	pod                 types.UID
	container, resource string
}

// record are the devices of one key. It is never changed, only replaced, so it can be read without the lock.
type record struct {
	devices checkpoint.DevicesPerNUMA
	// response is the answer of the plugin; nil while it is called.
	response *pluginapi.ContainerAllocateResponse
	// known is set once the plugin has reported all the devices since the start of the agent. They are then the same as
	// before, also if the machine was booted meanwhile.
	known bool
}

// ids returns the devices in order.
func (r *record) ids() []string {
	all := sets.New[string]()
	for _, ids := range r.devices {
		all.Insert(ids...)
	}
	return sets.List(all)
}

// missing returns the devices that a plugin has not reported.
func (r *record) missing(reported map[string]device) []string {
	return slices.DeleteFunc(r.ids(), func(id string) bool { _, listed := reported[id]; return listed })
}

// numa returns the NUMA nodes of a device.
func (r *record) numa(id string) (nodes []int64) {
	for _, node := range slices.Sorted(maps.Keys(r.devices)) {
		if node != checkpoint.NoNUMA && slices.Contains(r.devices[node], id) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// records are the devices that containers have.
type records map[key]*record

// sorted returns the keys in order.
func (r records) sorted() []key {
	return slices.SortedFunc(maps.Keys(r), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.pod, b.pod), cmp.Compare(a.container, b.container),
			cmp.Compare(a.resource, b.resource))
	})
}

// of returns the records of a container.
func (r records) of(pod types.UID, container string) records {
	own := records{}
	for k, rec := range r {
		if k.pod == pod && k.container == container {
			own[k] = rec
		}
	}
	return own
}

// confirm notes the records whose devices a plugin has reported.
func (r records) confirm(resource string, reported map[string]device) {
	for k, rec := range r {
		if k.resource == resource && rec.response != nil && !rec.known && len(rec.missing(reported)) == 0 {
			r[k] = &record{devices: rec.devices, response: rec.response, known: true}
		}
	}
}

// usesOf lists the containers of pods that have devices, by resource; those of all pods if pods is nil.
func (r records) usesOf(pods map[types.UID]bool) map[string][]model.DeviceUse {
	uses := map[string][]model.DeviceUse{}
	for _, k := range r.sorted() {
		if _, known := pods[k.pod]; pods != nil && !known {
			continue
		}
		use := model.DeviceUse{Pod: k.pod, Container: k.container, IDs: r[k].ids()}
		uses[k.resource] = append(uses[k.resource], use)
	}
	return uses
}

// encode returns the content of the record on disk. It leaves out allocations that have not ended.
func encode(all records, registered map[string][]string) ([]byte, error) {
	stored := checkpoint.Record{Registered: registered}
	for _, k := range all.sorted() {
		if all[k].response == nil {
			continue
		}
		response, err := proto.Marshal(all[k].response)
		if err != nil {
			return nil, fmt.Errorf("encoding the devices of container %s: %w", k.container, err)
		}
		stored.Entries = append(stored.Entries, checkpoint.PodDevicesEntry{
			PodUID: string(k.pod), ContainerName: k.container, ResourceName: k.resource,
			DeviceIDs: all[k].devices, AllocResp: response,
		})
	}
	return stored.Encode()
}

// decode returns the records on disk, and the names of the resources that were registered. Without a file there are
// none.
func decode(text []byte) (records, []string, error) {
	if text == nil {
		return records{}, nil, nil
	}
	stored, err := checkpoint.Decode(text)
	if err != nil {
		return records{}, nil, err
	}
	all := records{}
	for _, e := range stored.Entries {
		response := &pluginapi.ContainerAllocateResponse{}
		if err = proto.Unmarshal(e.AllocResp, response); err != nil {
			return records{}, nil, fmt.Errorf("the devices of container %s: %w", e.ContainerName, err)
		}
		k := key{types.UID(e.PodUID), e.ContainerName, e.ResourceName}
		all[k] = &record{devices: e.DeviceIDs, response: response}
	}
	return all, slices.Sorted(maps.Keys(stored.Registered)), nil
}

// configOf returns what plugins add to a container. If two plugins add different values, the first counts (kubelet:
// deviceRunContainerOptions).
func configOf(responses []*pluginapi.ContainerAllocateResponse) *model.DeviceConfig {
	config, known := &model.DeviceConfig{Annotations: map[string]string{}}, map[[2]string]bool{}
	isNew := func(kind, name string) bool {
		had := known[[2]string{kind, name}]
		known[[2]string{kind, name}] = true
		return !had
	}
	for _, r := range responses {
		addTexts(config, r, isNew)
		addPaths(config, r, isNew)
	}
	return config
}

// addTexts adds variables, annotations and names of CDI devices that are new.
func addTexts(
	config *model.DeviceConfig, r *pluginapi.ContainerAllocateResponse, isNew func(kind, name string) bool,
) {
	for _, name := range slices.Sorted(maps.Keys(r.GetEnvs())) {
		if isNew("env", name) {
			config.Env = append(config.Env, model.DeviceEnv{Name: name, Value: r.GetEnvs()[name]})
		}
	}
	for name, value := range r.GetAnnotations() {
		if isNew("annotation", name) {
			config.Annotations[name] = value
		}
	}
	for _, d := range r.GetCdiDevices() {
		if isNew("cdi", d.GetName()) {
			config.CDI = append(config.CDI, d.GetName())
		}
	}
}

// addPaths adds mounts and device files whose path in the container is new.
func addPaths(
	config *model.DeviceConfig, r *pluginapi.ContainerAllocateResponse, isNew func(kind, name string) bool,
) {
	for _, m := range r.GetMounts() {
		if isNew("mount", m.GetContainerPath()) {
			config.Mounts = append(config.Mounts, model.DeviceMount{
				HostPath: m.GetHostPath(), ContainerPath: m.GetContainerPath(), ReadOnly: m.GetReadOnly(),
			})
		}
	}
	for _, d := range r.GetDevices() {
		if isNew("device", d.GetContainerPath()) {
			config.Nodes = append(config.Nodes, model.DeviceNode{
				HostPath: d.GetHostPath(), ContainerPath: d.GetContainerPath(), Permissions: d.GetPermissions(),
			})
		}
	}
}
