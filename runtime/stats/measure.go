package stats

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
)

// node measures the node.
func (m *Meter) node(ctx context.Context, disks *Disks, devices []device) statsapi.NodeStats {
	at := metav1.NewTime(m.Now())
	all, _ := m.Groups.Usage("/") // Unknown values are left out.
	all.Limit = memoryCapacity(capacityOf(m.Node()))
	n := statsapi.NodeStats{
		NodeName: m.NodeName, StartTime: metav1.NewTime(m.Booted),
		CPU: cpuOf(&all, at), Memory: memoryOf(&all, at), IO: ioOf(&all, at), Swap: nodeSwap(&all, at),
		Fs: disks.node(at), Runtime: disks.runtime(at), Rlimit: rlimitOf(at),
		Network: networkOf(devices, at),
	}
	n.SystemContainers = m.systemContainers(ctx, all.Limit, at)
	return n
}

// capacityOf returns the resources of the machine.
func capacityOf(n criconfig.Node) v1.ResourceList {
	if n.Capacity == nil {
		return n.Allocatable
	}
	return n.Capacity
}

// memoryCapacity returns the memory of the machine in bytes; nil if it is not known.
func memoryCapacity(capacity v1.ResourceList) *uint64 {
	if total := capacity.Memory().Value(); total > 0 {
		return new(uint64(total))
	}
	return nil
}

// pod measures a pod and its running containers, and returns its cgroups.
func (m *Meter) pod(d *podspec.Desired, now *running, disks *Disks) (statsapi.PodStats, []group) {
	at := metav1.NewTime(m.Now())
	path, own := m.podGroup(d)
	p := statsapi.PodStats{
		PodRef: statsapi.PodReference{
			Namespace: d.Pod.Namespace, Name: m.APIName(d), UID: string(d.Pod.UID),
		},
		CPU: cpuOf(&own, at), Memory: memoryOf(&own, at), IO: ioOf(&own, at), Swap: swapOf(&own, at),
	}
	parent := group{namespace: p.PodRef.Namespace, pod: p.PodRef.Name, path: path}
	groups := []group{parent}
	children, _ := m.Groups.Children(path) // Unknown values are left out.
	if s := now.sandboxes[d.Pod.UID]; s != nil {
		p.StartTime = metav1.NewTime(time.Unix(0, s.GetCreatedAt()))
		one := parent.child(children, s.GetId())
		one.started = p.StartTime.Time
		one.devices = m.devices(one.path)
		p.Network = networkOf(one.devices, at)
		groups = append(groups, one)
	}
	for _, c := range newest(now.containers[d.Pod.UID]) {
		one := parent.child(children, c.GetId())
		one.container, one.image = c.GetMetadata().GetName(), imageOf(d.Pod, c)
		one.started = time.Unix(0, c.GetCreatedAt())
		p.Containers = append(p.Containers, m.container(&one, now.stats[one.id], disks))
		groups = append(groups, one)
		if p.StartTime.IsZero() {
			p.StartTime = metav1.NewTime(one.started)
		}
	}
	groups[0].started = p.StartTime.Time
	if pids, err := m.Groups.Pids(path); err == nil && len(pids) > 0 {
		p.ProcessStats = &statsapi.ProcessStats{ProcessCount: new(uint64(len(pids)))}
	}
	return p, groups
}

// podGroup returns the cgroup of a pod and its usage. It depends on the QoS class that the pod had at its start.
func (m *Meter) podGroup(d *podspec.Desired) (path string, own cgroup.Usage) {
	for _, path = range criconfig.CgroupParents(d.Pod.UID, m.Node()) {
		if own, _ = m.Groups.Usage(path); own.Memory != nil {
			break
		}
	}
	return path, own
}

// devices returns the interfaces in the network of a sandbox; none if they are not known.
func (m *Meter) devices(sandbox string) []device {
	if sandbox == "" {
		return nil
	}
	pids, err := m.Groups.Pids(sandbox)
	if err != nil || len(pids) == 0 {
		return nil
	}
	return devicesOf(pids[0])
}

// newest returns the newest container of each name, sorted by name.
func newest(containers []*runtimeapi.Container) []*runtimeapi.Container {
	slices.SortFunc(containers, func(a, b *runtimeapi.Container) int {
		return cmp.Or(cmp.Compare(a.GetMetadata().GetName(), b.GetMetadata().GetName()),
			cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt()))
	})
	return slices.CompactFunc(containers, func(a, b *runtimeapi.Container) bool {
		return a.GetMetadata().GetName() == b.GetMetadata().GetName()
	})
}

// container measures a container.
func (m *Meter) container(g *group, known *runtimeapi.ContainerStats, disks *Disks) statsapi.ContainerStats {
	at := metav1.NewTime(m.Now())
	var used cgroup.Usage
	if g.path != "" {
		used, _ = m.Groups.Usage(g.path) // Unknown values are left out.
	}
	s := statsapi.ContainerStats{
		Name: g.container, StartTime: metav1.NewTime(g.started),
		CPU: cpuOf(&used, at), Memory: memoryOf(&used, at), IO: ioOf(&used, at), Swap: swapOf(&used, at),
	}
	if layer := known.GetWritableLayer(); layer != nil {
		s.Rootfs = disks.layer(at, layer)
	}
	return s
}

// imageOf returns the image of a container as the pod names it; that of the runtime if the pod has no such container
// any more. The runtime may only know its digest.
func imageOf(pod *v1.Pod, c *runtimeapi.Container) string {
	for _, ref := range podspec.Containers(pod) {
		if ref.Name == c.GetMetadata().GetName() {
			return ref.Image
		}
	}
	return c.GetImage().GetImage()
}

// group is a measured cgroup. Its fields are the labels of cAdvisor's metrics.
type group struct {
	// path is the name of the cgroup; empty if it is gone. id is that of the container or the sandbox in it.
	path, id, container, image, namespace, pod string
	started                                    time.Time
	// devices are the interfaces of the machine or of a sandbox.
	devices []device
}

// child returns the cgroup of a container or a sandbox among the children of a pod's cgroup.
func (g *group) child(children []string, id string) group {
	one := group{id: id, namespace: g.namespace, pod: g.pod}
	if i := slices.IndexFunc(children, func(name string) bool {
		return strings.Contains(name[strings.LastIndexByte(name, '/')+1:], id)
	}); i >= 0 && id != "" {
		one.path = children[i]
	}
	return one
}

// topGroups returns the cgroups above those of pods. The topmost one has the interfaces of the machine.
func topGroups(n criconfig.Node, booted, started time.Time) []group {
	groups := []group{
		{path: "/", started: booted, devices: devicesOf(os.Getpid())},
		{path: criconfig.CgroupOfPods(n), started: started},
	}
	for _, tier := range criconfig.CgroupTiers(n) {
		groups = append(groups, group{path: tier, started: started})
	}
	return groups
}

// detail measures the details of cgroups.
func (m *Meter) detail(groups []group) []cgroup.Details {
	all := make([]cgroup.Details, len(groups))
	for i := range groups {
		if groups[i].path != "" {
			all[i], _ = m.Groups.Details(groups[i].path) // Unknown values are left out.
		}
	}
	return all
}
