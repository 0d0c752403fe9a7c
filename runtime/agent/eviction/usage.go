package eviction

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/state"
)

// Meter measures the usage of pods by calls to the runtime and walks over the pods' files. Call NewMeter to create one.
// It is safe for concurrent use.
type Meter struct {
	client *cri.Client
	layout state.Layout
	node   func() criconfig.Node
	disks  *Machine
	// calls lets one call of LimitedUsage to the runtime run at a time, and walks one walk over files.
	calls, walks turns
}

// NewMeter returns a Meter. node returns the node configuration with the place of cgroups. disks is used only by this
// Meter.
func NewMeter(client *cri.Client, layout state.Layout, node func() criconfig.Node, disks *Machine) *Meter {
	return &Meter{client: client, layout: layout, node: node, disks: disks, calls: newTurns(), walks: newTurns()}
}

// Usage measures pods without their files. A pod without a sandbox is left out, because its eviction would free
// nothing.
func (m *Meter) Usage(ctx context.Context, pods []*v1.Pod) (map[types.UID]*Usage, error) {
	sandboxes, err := m.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, cri.Wrap("listing sandboxes", err)
	}
	containers, err := m.containers(ctx, nil)
	if err != nil {
		return nil, err
	}
	there := map[types.UID]bool{}
	for _, s := range sandboxes.GetItems() {
		there[types.UID(s.GetMetadata().GetUid())] = true
	}
	all := map[types.UID]*Usage{}
	for _, pod := range pods {
		if there[pod.UID] {
			all[pod.UID] = &Usage{Containers: containers[pod.UID], Processes: m.processes(pod.UID)}
		}
	}
	return all, nil
}

// DiskUsage measures pods like Usage, with their logs and volumes.
func (m *Meter) DiskUsage(ctx context.Context, pods []*v1.Pod) (map[types.UID]*Usage, error) {
	all, err := m.Usage(ctx, pods)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if u := all[pod.UID]; u != nil {
			if err := m.addFiles(ctx, pod, u); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// LimitedUsage measures the disk space to which the limits of a pod apply. With an error, it returns the usage that it
// has measured so far.
func (m *Meter) LimitedUsage(ctx context.Context, pod *v1.Pod) (*Usage, error) {
	u := &Usage{}
	if _, limited := storageLimit(pod); !limited {
		return u, m.addSized(ctx, pod, u)
	}
	return u, errors.Join(m.addLayers(ctx, pod, u), m.addFiles(ctx, pod, u))
}

// FileUsage measures the volumes of a pod that a kubelet measures, its hosts file and the logs of the containers with
// these names. With an error, it returns the usage that it has measured so far.
func (m *Meter) FileUsage(ctx context.Context, pod *v1.Pod, containers []string) (*Usage, error) {
	u := &Usage{}
	for _, name := range containers {
		u.Containers = append(u.Containers, ContainerUsage{Name: name})
	}
	return u, m.addSome(ctx, pod, u, func(vol *v1.Volume) bool { return podspec.VolumePlugin(vol) != "" })
}

// addLayers adds the containers of a pod.
func (m *Meter) addLayers(ctx context.Context, pod *v1.Pod, u *Usage) error {
	if err := m.calls.take(ctx); err != nil {
		return err
	}
	defer m.calls.give()
	var err error
	if u.OwnImageFs, err = m.disks.ownImageFs(ctx); err != nil {
		return err
	}
	containers, err := m.containers(ctx, map[string]string{criconfig.LabelPodUID: string(pod.UID)})
	u.Containers = containers[pod.UID]
	return err
}

// containers measures the running containers with these labels. Containers that do not run have no usage of CPU or
// memory (kubelet: removeTerminatedContainers).
func (m *Meter) containers(ctx context.Context, labels map[string]string) (map[types.UID][]ContainerUsage, error) {
	stats, err := m.client.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{
		Filter: &runtimeapi.ContainerStatsFilter{LabelSelector: labels},
	})
	if err != nil {
		return nil, cri.Wrap("measuring containers", err)
	}
	all := map[types.UID][]ContainerUsage{}
	for _, s := range stats.GetStats() {
		if s.GetCpu() == nil && s.GetMemory() == nil {
			continue
		}
		own := s.GetAttributes().GetLabels()
		c := ContainerUsage{Name: own[criconfig.LabelContainerName]}
		if set := s.GetMemory().GetWorkingSetBytes(); set != nil {
			c.Memory = new(bounded(set.GetValue()))
		}
		if layer := s.GetWritableLayer(); layer.GetUsedBytes() != nil {
			c.Root = &Disk{bounded(layer.GetUsedBytes().GetValue()), bounded(layer.GetInodesUsed().GetValue())}
		}
		uid := types.UID(own[criconfig.LabelPodUID])
		all[uid] = append(all[uid], c)
	}
	return all, nil
}

func (m *Meter) processes(uid types.UID) int64 {
	count := 0
	for _, name := range criconfig.CgroupParents(uid, m.node()) {
		members, _ := cgroup.Machine{}.Members(name) // An unreadable cgroup counts as empty.
		count += len(members)
	}
	return int64(count)
}

// bounded converts an amount from the runtime. It is more than any disk, and sums of it do not overflow.
func bounded(n uint64) int64 { return int64(min(n, 1<<50)) }
