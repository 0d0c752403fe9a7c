package stats

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
)

// Runtime has the calls of the CRI that measure. *cri.Client implements it.
type Runtime interface {
	ListContainers(
		context.Context, *runtimeapi.ListContainersRequest, ...grpc.CallOption,
	) (*runtimeapi.ListContainersResponse, error)
	ListContainerStats(
		context.Context, *runtimeapi.ListContainerStatsRequest, ...grpc.CallOption,
	) (*runtimeapi.ListContainerStatsResponse, error)
	ListPodSandboxStats(
		context.Context, *runtimeapi.ListPodSandboxStatsRequest, ...grpc.CallOption,
	) (*runtimeapi.ListPodSandboxStatsResponse, error)
}

// Groups reads cgroups. cgroup.Machine implements it.
type Groups interface {
	Usage(name string) (cgroup.Usage, error)
	ContainerUsage(pods []string, containerID string) (cgroup.Usage, error)
}

// Settings configure a Meter. Every field is required.
type Settings struct {
	Runtime Runtime
	Groups  Groups
	// Node returns the configuration with the place of cgroups.
	Node func() criconfig.Node
	// NodeName is the name of the Node, and Started the start of the agent.
	NodeName string
	Started  time.Time
	// Pods returns the pods of the node, and APIName the name of one in the API.
	Pods    func(context.Context) ([]*podspec.Desired, error)
	APIName func(*podspec.Desired) string
	// Disks measures the file systems of the node.
	Disks func(context.Context) Disks
	Now   func() time.Time
}

// freshFor is how long a measurement is used. It is the interval of a kubelet (cadvisor: HousekeepingInterval).
const freshFor = 10 * time.Second

// Meter measures. It is safe for concurrent use: one measurement runs at a time.
type Meter struct {
	Settings

	// slot holds a value while a measurement runs. It guards the following fields.
	slot chan struct{}
	// latest is the last measurement, from the time at. images has the image of each of its containers, and before are
	// its samples.
	latest *statsapi.Summary
	at     time.Time
	images map[sample]containerImage
	before samples
}

// containerImage is the id and the image of a container.
type containerImage struct{ id, image string }

// New returns a Meter. It measures nothing before a request.
func New(s Settings) *Meter { return &Meter{Settings: s, slot: make(chan struct{}, 1)} }

// Summary returns the usage of the node, its pods and their running containers. It must not be changed.
func (m *Meter) Summary(ctx context.Context) (*statsapi.Summary, error) {
	s, _, err := m.measured(ctx)
	return s, err
}

func (m *Meter) measured(ctx context.Context) (*statsapi.Summary, map[sample]containerImage, error) {
	select {
	case m.slot <- struct{}{}:
		defer func() { <-m.slot }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	now := m.Now()
	if age := now.Sub(m.at); m.latest != nil && age >= 0 && age < freshFor {
		return m.latest, m.images, nil
	}
	s, images, err := m.measure(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.before = addRates(s, m.before)
	m.latest, m.at, m.images = s, now, images
	return s, images, nil
}

// running has what the runtime knows of the running containers.
type running struct {
	containers map[types.UID][]*runtimeapi.Container
	disks      map[string]*runtimeapi.ContainerStats
	networks   map[types.UID]*runtimeapi.NetworkUsage
}

// measure measures everything.
func (m *Meter) measure(ctx context.Context) (*statsapi.Summary, map[sample]containerImage, error) {
	pods, err := m.Pods(ctx)
	if err != nil {
		return nil, nil, err
	}
	now, err := m.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	disks := m.Disks(ctx)
	s := &statsapi.Summary{Node: m.node(&disks)}
	images := map[sample]containerImage{}
	for _, d := range pods {
		containers := now.containers[d.Pod.UID]
		if len(containers) == 0 {
			continue // It does not run (kubelet: removeTerminatedPods).
		}
		s.Pods = append(s.Pods, m.pod(d, containers, now, &disks, images))
	}
	return s, images, nil
}

// look lists the running containers and the runtime's statistics.
func (m *Meter) look(ctx context.Context) (*running, error) {
	filter := &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}
	list, err := m.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: filter})
	if err != nil {
		return nil, cri.Wrap("listing containers", err)
	}
	stats, err := m.Runtime.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{})
	if err != nil {
		return nil, cri.Wrap("measuring containers", err)
	}
	now := &running{
		containers: map[types.UID][]*runtimeapi.Container{}, disks: map[string]*runtimeapi.ContainerStats{},
		networks: map[types.UID]*runtimeapi.NetworkUsage{},
	}
	for _, c := range list.GetContainers() {
		uid := types.UID(c.GetLabels()[criconfig.LabelPodUID])
		now.containers[uid] = append(now.containers[uid], c)
	}
	for _, s := range stats.GetStats() {
		now.disks[s.GetAttributes().GetId()] = s
	}
	// Older runtimes do not have this call. Their pods have no network statistics.
	sandboxes, err := m.Runtime.ListPodSandboxStats(ctx, &runtimeapi.ListPodSandboxStatsRequest{})
	if err == nil {
		for _, s := range sandboxes.GetStats() {
			now.networks[types.UID(s.GetAttributes().GetMetadata().GetUid())] = s.GetLinux().GetNetwork()
		}
	}
	return now, nil
}

// node measures the node.
func (m *Meter) node(disks *Disks) statsapi.NodeStats {
	at := metav1.NewTime(m.Now())
	all, _ := m.Groups.Usage("/") // Unknown values are left out.
	all.Limit = memoryCapacity(m.Node())
	n := statsapi.NodeStats{
		NodeName: m.NodeName, StartTime: metav1.NewTime(m.Started),
		CPU: cpuOf(&all, at), Memory: memoryOf(&all, at), Swap: swapOf(&all, at),
		Fs: disks.node(at), Runtime: disks.runtime(at), Rlimit: rlimitOf(at), Network: machineNetwork(at),
	}
	pods, _ := m.Groups.Usage(criconfig.CgroupOfPods(m.Node()))
	if cpu := cpuOf(&pods, at); cpu != nil {
		n.SystemContainers = []statsapi.ContainerStats{{
			Name: statsapi.SystemContainerPods, StartTime: n.StartTime,
			CPU: cpu, Memory: memoryOf(&pods, at), Swap: swapOf(&pods, at),
		}}
	}
	return n
}

// memoryCapacity returns the memory of the machine in bytes; nil if it is not known.
func memoryCapacity(n criconfig.Node) *uint64 {
	capacity := n.Capacity
	if capacity == nil {
		capacity = n.Allocatable
	}
	if total := capacity.Memory().Value(); total > 0 {
		return new(uint64(total))
	}
	return nil
}

// pod measures a pod and its running containers.
func (m *Meter) pod(
	d *podspec.Desired, containers []*runtimeapi.Container, now *running, disks *Disks,
	images map[sample]containerImage,
) statsapi.PodStats {
	groups := criconfig.CgroupParents(d.Pod.UID, m.Node())
	at := metav1.NewTime(m.Now())
	var own cgroup.Usage
	for _, group := range groups {
		if own, _ = m.Groups.Usage(group); own.Memory != nil {
			break
		}
	}
	p := statsapi.PodStats{
		PodRef: statsapi.PodReference{
			Namespace: d.Pod.Namespace, Name: m.APIName(d), UID: string(d.Pod.UID),
		},
		CPU: cpuOf(&own, at), Memory: memoryOf(&own, at), Swap: swapOf(&own, at), ProcessStats: processesOf(&own),
		Network: networkOf(now.networks[d.Pod.UID]),
	}
	slices.SortFunc(containers, func(a, b *runtimeapi.Container) int {
		return cmp.Or(cmp.Compare(a.GetMetadata().GetName(), b.GetMetadata().GetName()),
			cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt()))
	})
	for _, c := range containers {
		one := m.container(c, groups, now.disks[c.GetId()], disks)
		if n := len(p.Containers); n > 0 && p.Containers[n-1].Name == one.Name {
			continue // The newest of a name counts.
		}
		p.Containers = append(p.Containers, one)
		images[sample{uid: p.PodRef.UID, container: one.Name}] = containerImage{c.GetId(), c.GetImage().GetImage()}
		if p.StartTime.IsZero() || one.StartTime.Before(&p.StartTime) {
			p.StartTime = one.StartTime
		}
	}
	return p
}

// container measures a container.
func (m *Meter) container(
	c *runtimeapi.Container, groups []string, onDisk *runtimeapi.ContainerStats, disks *Disks,
) statsapi.ContainerStats {
	at := metav1.NewTime(m.Now())
	used, _ := m.Groups.ContainerUsage(groups, c.GetId()) // Unknown values are left out.
	s := statsapi.ContainerStats{
		Name: c.GetMetadata().GetName(), StartTime: metav1.NewTime(time.Unix(0, c.GetCreatedAt())),
		CPU: cpuOf(&used, at), Memory: memoryOf(&used, at), Swap: swapOf(&used, at),
	}
	if layer := onDisk.GetWritableLayer(); layer != nil {
		s.Rootfs = disks.layer(at, layer)
	}
	return s
}

// networkOf returns the usage of a pod's network; nil if it is not known.
func networkOf(n *runtimeapi.NetworkUsage) *statsapi.NetworkStats {
	if n.GetDefaultInterface() == nil {
		return nil
	}
	s := &statsapi.NetworkStats{
		Time: metav1.NewTime(time.Unix(0, n.GetTimestamp())), InterfaceStats: interfaceOf(n.GetDefaultInterface()),
	}
	for _, one := range append([]*runtimeapi.NetworkInterfaceUsage{n.GetDefaultInterface()}, n.GetInterfaces()...) {
		s.Interfaces = append(s.Interfaces, interfaceOf(one))
	}
	return s
}

func interfaceOf(i *runtimeapi.NetworkInterfaceUsage) statsapi.InterfaceStats {
	value := func(v *runtimeapi.UInt64Value) *uint64 {
		if v == nil {
			return nil
		}
		return &v.Value
	}
	return statsapi.InterfaceStats{
		Name: i.GetName(), RxBytes: value(i.GetRxBytes()), RxErrors: value(i.GetRxErrors()),
		TxBytes: value(i.GetTxBytes()), TxErrors: value(i.GetTxErrors()),
	}
}
