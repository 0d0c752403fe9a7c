package eviction

import (
	"context"
	"math"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Meter measures the usage of pods. It makes two calls to the runtime and walks over the pods' files.
type Meter struct {
	Client *cri.Client
	Layout state.Layout
	// Node returns the node configuration with the place of cgroups.
	Node func() criconfig.Node
}

// Measure measures pods. A pod without a sandbox is left out, because its eviction would free nothing.
func (m *Meter) Measure(ctx context.Context, pods []*v1.Pod) (map[types.UID]*Usage, error) {
	sandboxes, err := m.Client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, cri.Wrap("listing sandboxes", err)
	}
	stats, err := m.Client.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{})
	if err != nil {
		return nil, cri.Wrap("measuring containers", err)
	}
	there := map[types.UID]bool{}
	for _, s := range sandboxes.GetItems() {
		there[types.UID(s.GetMetadata().GetUid())] = true
	}
	all := map[types.UID]*Usage{}
	for _, pod := range pods {
		if there[pod.UID] {
			all[pod.UID] = &Usage{Volumes: m.volumes(pod), Processes: m.processes(pod.UID)}
		}
	}
	for _, s := range stats.GetStats() {
		labels := s.GetAttributes().GetLabels()
		if usage := all[types.UID(labels[criconfig.LabelPodUID])]; usage != nil {
			usage.Containers = append(usage.Containers, m.container(s, labels))
		}
	}
	return all, nil
}

func (m *Meter) container(s *runtimeapi.ContainerStats, labels map[string]string) ContainerUsage {
	c := ContainerUsage{Name: labels[criconfig.LabelContainerName]}
	if set := s.GetMemory().GetWorkingSetBytes(); set != nil {
		c.Memory = new(bounded(set.GetValue()))
	}
	if layer := s.GetWritableLayer(); layer.GetUsedBytes() != nil {
		c.Root = &Disk{bounded(layer.GetUsedBytes().GetValue()), bounded(layer.GetInodesUsed().GetValue())}
	}
	uid := types.UID(labels[criconfig.LabelPodUID])
	logs := m.Layout.Pod(uid).Logs(labels[criconfig.LabelPodNamespace], labels[criconfig.LabelPodName])
	if dir, err := logs.Dir(); err == nil && c.Name == filepath.Base(c.Name) {
		c.Logs = new(diskOf(filepath.Join(dir, c.Name)))
	}
	return c
}

// volumes measures the volumes that end with the pod and are on the node's disk (kubelet: localVolumeNames).
func (m *Meter) volumes(pod *v1.Pod) Disk {
	var sum Disk
	for i := range pod.Spec.Volumes {
		vol, plugin := &pod.Spec.Volumes[i], ""
		switch {
		case vol.EmptyDir != nil && vol.EmptyDir.Medium == v1.StorageMediumDefault:
			plugin = state.EmptyDir
		case vol.ConfigMap != nil:
			plugin = "configmap"
		default:
			continue
		}
		if dir, err := m.Layout.Pod(pod.UID).VolumeDir(plugin, vol.Name); err == nil {
			sum.add(diskOf(dir))
		}
	}
	return sum
}

func (m *Meter) processes(uid types.UID) int64 {
	count := 0
	for _, name := range criconfig.CgroupParents(uid, m.Node()) {
		members, _ := cgroup.Machine{}.Members(name) // An unreadable cgroup counts as empty.
		count += len(members)
	}
	return int64(count)
}

func diskOf(path string) Disk {
	bytes, inodes := statedir.Usage(path)
	return Disk{bytes, inodes}
}

func bounded(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
