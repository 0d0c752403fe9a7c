package session

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/snapshot"
)

// PodUsage is the usage of a pod's containers.
type PodUsage struct {
	Pod        model.PodRef
	Containers []ContainerUsage
	// Limits are the limits of the whole pod: its own, or the sum of its containers' limits if all shown containers
	// have one.
	Limits Limits
}

// Limits are the maximum usage. A nil field means no limit.
type Limits struct {
	// NanoCores is in billionths of a core. Memory is in bytes.
	NanoCores, Memory *uint64
}

// limitsOf converts the limits of a manifest.
func limitsOf(list v1.ResourceList) Limits {
	var l Limits
	if cpu, ok := list[v1.ResourceCPU]; ok {
		l.NanoCores = new(uint64(max(cpu.MilliValue(), 0)) * 1_000_000)
	}
	if memory, ok := list[v1.ResourceMemory]; ok {
		l.Memory = new(uint64(max(memory.Value(), 0)))
	}
	return l
}

// podLimits returns the limits of a pod with some shown containers.
func podLimits(pod *v1.Pod, shown []ContainerUsage) Limits {
	var own Limits
	if pod.Spec.Resources != nil {
		own = limitsOf(pod.Spec.Resources.Limits)
	}
	if own.NanoCores == nil {
		own.NanoCores = sumOf(shown, func(l *Limits) *uint64 { return l.NanoCores })
	}
	if own.Memory == nil {
		own.Memory = sumOf(shown, func(l *Limits) *uint64 { return l.Memory })
	}
	return own
}

// sumOf adds one limit of all containers. It returns nil if a container has none.
func sumOf(shown []ContainerUsage, of func(*Limits) *uint64) *uint64 {
	total := uint64(0)
	for i := range shown {
		limit := of(&shown[i].Limits)
		if limit == nil {
			return nil
		}
		total += *limit
	}
	if len(shown) == 0 {
		return nil
	}
	return &total
}

// ContainerUsage is the usage of one container. A value is nil if the runtime does not report it or the container does
// not run.
type ContainerUsage struct {
	Name     string
	Type     podspec.ContainerType
	ID       string
	Running  bool
	Restarts uint32
	// NanoCores is the CPU usage in billionths of a core.
	NanoCores *uint64
	// WorkingSet is the memory that cannot be reclaimed, in bytes.
	WorkingSet *uint64
	// Limits are the limits in the manifest.
	Limits Limits
}

// Meter measures the usage of pods. CPU usage needs two measurements, so the first one may lack it.
type Meter struct {
	engine *Sessions
	last   map[string]*runtimeapi.CpuUsage
}

// NewMeter returns a Meter without measurements.
func (x *Sessions) NewMeter() *Meter { return &Meter{engine: x} }

// Measure measures pods with two calls for each. If a pod cannot be measured, its containers have no values, and its
// error is returned with the results of the others. Measure returns no results if the context ends or the runtime does
// not answer at all.
func (m *Meter) Measure(ctx context.Context, pods []*podspec.Desired) ([]PodUsage, error) {
	looks, errs := make([]usageReading, len(pods)), make([]error, len(pods))
	var group errgroup.Group
	group.SetLimit(cri.MaxCalls)
	for i, d := range pods {
		group.Go(func() error {
			looks[i], errs[i] = m.engine.readUsage(ctx, model.RefOf(d.Pod))
			return nil // A failure of one pod must not stop the others.
		})
	}
	_ = group.Wait()
	if err := m.engine.client.NoneAnswered(ctx, errs); err != nil {
		return nil, err
	}
	before := m.last
	m.last = map[string]*runtimeapi.CpuUsage{}
	found := make([]PodUsage, 0, len(pods))
	for i, d := range pods {
		for id, s := range looks[i].stats {
			m.last[id] = s.GetCpu()
		}
		containers := looks[i].usage(d, before)
		found = append(found, PodUsage{
			Pod:        model.RefOf(d.Pod),
			Containers: containers,
			Limits:     podLimits(d.Pod, containers),
		})
	}
	return found, errors.Join(errs...)
}

// usageReading is one measurement of a pod. Its containers are sorted from new to old.
type usageReading struct {
	containers []*runtimeapi.Container
	stats      map[string]*runtimeapi.ContainerStats
}

func (x *Sessions) readUsage(ctx context.Context, ref model.PodRef) (usageReading, error) {
	look := usageReading{stats: map[string]*runtimeapi.ContainerStats{}}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		look.containers, err = x.observer.ListNewestFirst(ctx, ref)
		return err
	})
	group.Go(func() error {
		reply, err := x.client.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{
			Filter: &runtimeapi.ContainerStatsFilter{LabelSelector: observe.UIDSelector(ref)},
		})
		for _, s := range reply.GetStats() {
			look.stats[s.GetAttributes().GetId()] = s
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return look, fmt.Errorf("measuring pod %s: %w", ref, err)
	}
	return look, nil
}

// usage returns the usage of the newest container of each name, in the manifest's order. It leaves out an init
// container that does not run, because it is finished.
func (l *usageReading) usage(d *podspec.Desired, before map[string]*runtimeapi.CpuUsage) []ContainerUsage {
	var found []ContainerUsage
	for _, ref := range podspec.Containers(d.Pod) {
		u := l.one(ref.Name, before)
		u.Type, u.Limits = ref.Type, limitsOf(ref.Resources.Limits)
		if u.Running || ref.Type != podspec.Init {
			found = append(found, u)
		}
	}
	return found
}

func (l *usageReading) one(name string, before map[string]*runtimeapi.CpuUsage) ContainerUsage {
	c := l.newest(name)
	u := ContainerUsage{
		Name:     name,
		ID:       c.GetId(),
		Restarts: snapshot.ParseCount(c.GetAnnotations()[criconfig.AnnotationRestartCount]),
	}
	u.Running = c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING
	if s := l.stats[u.ID]; u.Running && s != nil {
		u.NanoCores = nanoCores(before[u.ID], s.GetCpu())
		if set := s.GetMemory().GetWorkingSetBytes(); set != nil {
			u.WorkingSet = &set.Value
		}
	}
	return u
}

// newest returns the newest container of that name that has run. It returns nil if none has.
func (l *usageReading) newest(name string) *runtimeapi.Container {
	for _, c := range l.containers {
		if c.GetMetadata().GetName() == name && c.GetState() != runtimeapi.ContainerState_CONTAINER_CREATED {
			return c
		}
	}
	return nil
}

// nanoCores returns the CPU usage that the runtime reports, or else computes it from two measurements. It ignores a
// reported zero, because containerd returns zero to the first caller.
func nanoCores(before, now *runtimeapi.CpuUsage) *uint64 {
	if given := now.GetUsageNanoCores().GetValue(); given > 0 {
		return &given
	}
	from, to := before.GetUsageCoreNanoSeconds(), now.GetUsageCoreNanoSeconds()
	elapsed := now.GetTimestamp() - before.GetTimestamp()
	if from == nil || to == nil || elapsed <= 0 || to.GetValue() < from.GetValue() {
		return nil
	}
	used := uint64(float64(to.GetValue()-from.GetValue()) / float64(elapsed) * 1e9)
	return &used
}
