package devices

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/podctl/podctl/runtime/model"
)

// prefer returns the devices that a plugin prefers of those available; nil if it has no preference. must are devices
// that the choice contains anyway.
type prefer func(ctx context.Context, resource string, available, must []string, size int64) ([]string, error)

// chooser chooses devices for the containers of one pod.
type chooser struct {
	resources map[string]*resource
	records   records
	// uses are the pods that use their devices, and whether they end. It is nil while not all pods are known: any other
	// pod may then have ended, so the pod waits for its devices.
	uses    map[types.UID]bool
	request *model.DeviceRequest
	prefer  prefer
	// reusable are the devices of init containers, which end before the next container starts.
	reusable map[string]sets.Set[string]
	// chosen are the devices that were chosen for containers of the pod.
	chosen map[string]sets.Set[string]
}

// choose chooses the devices of all containers. Containers get devices in the order of the request. An init container
// that ends leaves its devices to the others of its pod (kubelet: ManagerImpl.Allocate).
func (c *chooser) choose(ctx context.Context) model.Devices {
	c.reusable, c.chosen = map[string]sets.Set[string]{}, map[string]sets.Set[string]{}
	all := model.Devices{Sets: map[string][]model.DeviceSet{}, Faults: map[string]model.DeviceFault{}}
	for i := range c.request.Containers {
		need := &c.request.Containers[i]
		for _, name := range need.Resources() {
			set, fault := c.chooseOne(ctx, need, name)
			if fault != nil {
				all.Faults[need.Container] = *fault
				break
			}
			all.Sets[need.Container] = append(all.Sets[need.Container], *set)
			c.note(need, set)
		}
	}
	return together(all)
}

// together holds containers that can get their devices while others of the pod cannot. A pod gets all its devices or
// none, so that two pods do not wait for each other.
func together(all model.Devices) model.Devices {
	if len(all.Faults) == 0 {
		return all
	}
	first := slices.Sorted(maps.Keys(all.Faults))[0]
	for container := range all.Sets {
		if _, has := all.Faults[container]; !has && len(all.Unallocated(container)) > 0 {
			f := all.Faults[first]
			f.Message = "container " + first + ": " + f.Message
			all.Faults[container] = f
		}
	}
	return all
}

// note notes the devices of a container.
func (c *chooser) note(need *model.DeviceNeed, set *model.DeviceSet) {
	name, ids := set.Resource, set.IDs
	if c.reusable[name] == nil {
		c.reusable[name], c.chosen[name] = sets.New[string](), sets.New[string]()
	}
	c.chosen[name].Insert(ids...)
	if need.Ends {
		c.reusable[name].Insert(ids...)
	} else {
		c.reusable[name].Delete(ids...)
	}
}

// chooseOne returns the devices of one resource that a container has or can get (kubelet: devicesToAllocate). A
// container keeps its devices, even if its plugin does not report them any more, as with a kubelet that does not
// restart. They must have been reported since the start of the agent, because after a boot of the machine they may be
// others.
func (c *chooser) chooseOne(
	ctx context.Context, need *model.DeviceNeed, name string,
) (*model.DeviceSet, *model.DeviceFault) {
	r, amount := c.resources[name], need.Amounts[name]
	record := c.records[key{c.request.Pod, need.Container, name}]
	switch {
	case record != nil && record.known:
		return recorded(record, name, amount)
	case r == nil, r.expired:
		return nil, unregistered(name, amount)
	case r.reportedAt.IsZero():
		return nil, unreported(name, r.plugin)
	case record != nil:
		return nil, unlisted(record, name, r.devices)
	case len(r.healthy()) == 0:
		return nil, rejecting(name, "no healthy devices present; cannot allocate unhealthy devices %s", name)
	}
	ids, fault := c.pick(ctx, r, name, amount)
	return &model.DeviceSet{Resource: name, IDs: ids}, fault
}

// unregistered is the fault of a resource that no plugin has registered.
func unregistered(name string, amount int64) *model.DeviceFault {
	return &model.DeviceFault{
		Resource: name, Message: "no device plugin has registered " + name,
		Status: fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: 0, capacity: 0", name, amount),
	}
}

func rejecting(name, format string, args ...any) *model.DeviceFault {
	return &model.DeviceFault{Resource: name, Message: fmt.Sprintf(format, args...), Rejects: true}
}

// unreported is the fault of a resource whose plugin has not reported its devices since the start of the agent.
func unreported(name string, p *plugin) *model.DeviceFault {
	missing := "has not registered since the agent started"
	if p != nil {
		missing = "has registered, but not reported its devices yet"
	}
	return &model.DeviceFault{
		Resource: name, Message: fmt.Sprintf("the device plugin of %s %s; podctl waits for it", name, missing),
		Status: "no healthy devices present; cannot allocate unhealthy devices " + name,
	}
}

// unlisted is the fault of a container whose devices were not reported since the start of the agent.
func unlisted(r *record, name string, reported map[string]device) *model.DeviceFault {
	return &model.DeviceFault{Resource: name, Message: fmt.Sprintf(
		"the container has devices of %s that the plugin has not reported since the agent started: %q; "+
			"delete the pod to use other ones", name, r.missing(reported))}
}

// recorded returns the devices that a container has.
func recorded(r *record, name string, amount int64) (*model.DeviceSet, *model.DeviceFault) {
	ids := r.ids()
	if int64(len(ids)) != amount {
		return nil, &model.DeviceFault{Resource: name, Message: fmt.Sprintf(
			"the request for %s changed from %d to %d; a container keeps its devices until the pod is deleted",
			name, len(ids), amount)}
	}
	return &model.DeviceSet{Resource: name, IDs: ids, Allocated: true}, nil
}

// pick chooses healthy devices: first those that init containers of the pod leave, then those that the plugin prefers,
// then any.
func (c *chooser) pick(ctx context.Context, r *resource, name string, amount int64) ([]string, *model.DeviceFault) {
	sick := func(id string) bool { return !r.devices[id].healthy }
	picked := take(nil, slices.DeleteFunc(sets.List(c.reusable[name]), sick), amount)
	missing := amount - int64(len(picked))
	if missing == 0 {
		return picked, nil
	}
	free, ending := c.free(r, name)
	if int64(len(free)) < missing {
		fault := rejecting(name, "requested number of devices unavailable for %s. Requested: %d, Available: %d",
			name, missing, len(free))
		if fault.Rejects = int64(len(free)+ending) < missing; !fault.Rejects {
			fault.Message, fault.Status = fault.Message+"; podctl waits for pods that end", fault.Message
		}
		return nil, fault
	}
	preferred, err := c.prefer(ctx, name, slices.Sorted(slices.Values(slices.Concat(free, picked))), picked, amount)
	if err != nil {
		return nil, rejecting(name, "device plugin GetPreferredAllocation rpc failed with err: %v", err)
	}
	available := sets.New(free...)
	preferred = slices.DeleteFunc(slices.Clone(preferred), func(id string) bool { return !available.Has(id) })
	picked = take(take(picked, preferred, amount), free, amount)
	slices.Sort(picked)
	return picked, nil
}

// take adds IDs to picked that it does not contain, until it has the amount.
func take(picked, from []string, amount int64) []string {
	for _, id := range from {
		if int64(len(picked)) < amount && !slices.Contains(picked, id) {
			picked = append(picked, id)
		}
	}
	return picked
}

// free returns the healthy devices that no container has, and the number of those that pods have which end.
func (c *chooser) free(r *resource, name string) (free []string, ending int) {
	used, leaving := c.chosen[name].Clone(), sets.New[string]()
	for k, rec := range c.records {
		switch {
		case k.resource != name:
		case k.pod == c.request.Pod && c.request.Amount(k.container, name) == 0:
			leaving.Insert(rec.ids()...) // The manifest has changed; see Manager.Keep.
		case k.pod == c.request.Pod:
			used.Insert(rec.ids()...)
		case c.uses[k.pod], c.uses == nil:
			leaving.Insert(rec.ids()...)
		default:
			used.Insert(rec.ids()...)
		}
	}
	for _, id := range r.healthy() {
		switch {
		case used.Has(id):
		case leaving.Has(id):
			ending++
		default:
			free = append(free, id)
		}
	}
	return free, ending
}
