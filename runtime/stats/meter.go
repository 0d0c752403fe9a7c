package stats

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/machine"
)

// Groups reads cgroups. cgroup.Machine implements it.
type Groups interface {
	Usage(name string) (cgroup.Usage, error)
	Pids(name string) ([]int, error)
	Details(name string) (cgroup.Details, error)
	Children(name string) ([]string, error)
	Of(pid int) (cgroup.Group, error)
}

// Settings configure a Meter. Every field is required.
type Settings struct {
	Runtime runtimeapi.RuntimeServiceClient
	Groups  Groups
	// RuntimeProcess returns the id of the runtime's process.
	RuntimeProcess func(context.Context) (int, error)
	// Node returns the configuration with the place of cgroups.
	Node func() criconfig.Node
	// NodeName is the name of the Node. Booted is the start of the machine, and Started that of the agent.
	NodeName        string
	Booted, Started time.Time
	// Identity is part of the metrics of the machine.
	Identity machine.Identity
	// Pods returns the pods of the node, and APIName the name of one in the API.
	Pods    func(context.Context) ([]*podspec.Desired, error)
	APIName func(*podspec.Desired) string
	// Disks measures the file systems of the node, and Files the files of a pod with the containers of these names.
	Disks func(context.Context) Disks
	Files func(ctx context.Context, pod *v1.Pod, containers []string) Files
	Now   func() time.Time
}

// freshFor is how long a measurement is used. It is the interval of a kubelet (cadvisor: HousekeepingInterval).
const freshFor = 10 * time.Second

// Meter measures. It is safe for concurrent use: one measurement runs at a time.
type Meter struct {
	Settings

	// slot holds a value while a measurement runs. It guards the following fields.
	slot chan struct{}
	// latest is the last measurement, and before are its samples.
	latest *measurement
	before samples
	files  walker
}

// measurement is the result of measuring at one time. It does not change, except that details are added once.
type measurement struct {
	summary *statsapi.Summary
	at      time.Time
	pods    map[types.UID]*v1.Pod
	// groups are the measured cgroups. details has what was measured of each one; nil until a request needs it.
	groups  []group
	details []cgroup.Details
}

// New returns a Meter. It measures nothing before a request.
func New(s Settings) *Meter { return &Meter{Settings: s, slot: make(chan struct{}, 1)} }

// CPUAndMemory returns the usage of the node, its pods and their running containers, without the files of pods. It must
// not be changed.
func (m *Meter) CPUAndMemory(ctx context.Context) (*statsapi.Summary, error) {
	now, err := m.measured(ctx, usage)
	if err != nil {
		return nil, err
	}
	return now.summary, nil
}

// Summary returns the same as CPUAndMemory, with the files of pods.
func (m *Meter) Summary(ctx context.Context) (*statsapi.Summary, error) {
	now, err := m.measured(ctx, usage)
	if err != nil {
		return nil, err
	}
	return withFiles(now.summary, m.files.look(ctx, m, now)), nil
}

// extent is what a measurement contains.
type extent int

const (
	// usage is what the summary and metrics-server need, detailed also what cAdvisor shows.
	usage extent = iota
	detailed
)

// measured returns a measurement that is not older than freshFor.
func (m *Meter) measured(ctx context.Context, wanted extent) (*measurement, error) {
	select {
	case m.slot <- struct{}{}:
		defer func() { <-m.slot }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if now := m.Now(); m.latest == nil || now.Sub(m.latest.at) >= freshFor || now.Before(m.latest.at) {
		latest, err := m.measure(ctx)
		if err != nil {
			return nil, err
		}
		m.before = addRates(latest.summary, m.before)
		m.latest = latest
	}
	if wanted == detailed && m.latest.details == nil {
		m.latest.details = m.detail(m.latest.groups)
	}
	return m.latest, nil
}

// running has what the runtime knows of the running pods.
type running struct {
	sandboxes  map[types.UID]*runtimeapi.PodSandbox
	containers map[types.UID][]*runtimeapi.Container
	stats      map[string]*runtimeapi.ContainerStats
}

// measure measures everything.
func (m *Meter) measure(ctx context.Context) (*measurement, error) {
	pods, err := m.Pods(ctx)
	if err != nil {
		return nil, err
	}
	now, err := m.look(ctx)
	if err != nil {
		return nil, err
	}
	disks := m.Disks(ctx)
	latest := &measurement{
		at: m.Now(), pods: map[types.UID]*v1.Pod{},
		groups: topGroups(m.Node(), m.Booted, m.Started),
	}
	latest.summary = &statsapi.Summary{Node: m.node(ctx, &disks, latest.groups[0].devices)}
	for _, d := range pods {
		if len(now.containers[d.Pod.UID]) == 0 {
			continue // It does not run (kubelet: removeTerminatedPods).
		}
		pod, groups := m.pod(d, now, &disks)
		latest.summary.Pods = append(latest.summary.Pods, pod)
		latest.groups = append(latest.groups, groups...)
		latest.pods[d.Pod.UID] = d.Pod
	}
	return latest, nil
}

// look lists the running pods and the runtime's statistics of containers.
func (m *Meter) look(ctx context.Context) (*running, error) {
	filter := &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}
	list, err := m.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: filter})
	if err != nil {
		return nil, cri.Wrap("listing containers", err)
	}
	ready := &runtimeapi.PodSandboxFilter{
		State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	}
	sandboxes, err := m.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: ready})
	if err != nil {
		return nil, cri.Wrap("listing sandboxes", err)
	}
	stats, err := m.Runtime.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{})
	if err != nil {
		return nil, cri.Wrap("measuring containers", err)
	}
	now := &running{
		sandboxes: map[types.UID]*runtimeapi.PodSandbox{}, containers: map[types.UID][]*runtimeapi.Container{},
		stats: map[string]*runtimeapi.ContainerStats{},
	}
	for _, c := range list.GetContainers() {
		uid := types.UID(c.GetLabels()[criconfig.LabelPodUID])
		now.containers[uid] = append(now.containers[uid], c)
	}
	for _, s := range sandboxes.GetItems() {
		now.sandboxes[types.UID(s.GetMetadata().GetUid())] = s
	}
	for _, s := range stats.GetStats() {
		now.stats[s.GetAttributes().GetId()] = s
	}
	return now, nil
}
