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

// PodUsage is what the containers of a pod use.
type PodUsage struct {
	Pod        model.PodRef
	Containers []ContainerUsage
	// Limits are those of the whole pod: its own, or the sum of its containers' if all that are
	// shown have one.
	Limits Limits
}

// Limits are what may be used at most; nil where there is no limit.
type Limits struct {
	// NanoCores is in billionths of a core, Memory in bytes.
	NanoCores, Memory *uint64
}

// limitsOf reads the limits of a manifest.
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

// podLimits are those of a pod of which some containers are shown.
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

// sumOf adds one limit of all containers; nil when one has none.
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

// ContainerUsage is what one container uses. A value that the runtime does not
// tell is nil, as all are of a container that does not run.
type ContainerUsage struct {
	Name     string
	Type     podspec.ContainerType
	ID       string
	Running  bool
	Restarts uint32
	// NanoCores is the use of processors, in billionths of a core.
	NanoCores *uint64
	// WorkingSet is the memory that cannot be taken away, in bytes.
	WorkingSet *uint64
	// Limits are those of the manifest.
	Limits Limits
}

// Meter measures what pods use. The use of processors is told by two looks, so the
// first one may not have it.
type Meter struct {
	engine *Sessions
	last   map[string]*runtimeapi.CpuUsage
}

// NewMeter begins to measure.
func (x *Sessions) NewMeter() *Meter { return &Meter{engine: x} }

// Measure looks at pods, two calls for each. One that cannot be measured keeps no other
// from it: nothing is known of its containers, and its error is returned beside the others.
// Nothing is returned when the user ended it or the runtime does not answer at all.
func (m *Meter) Measure(ctx context.Context, pods []*podspec.Desired) ([]PodUsage, error) {
	looks, errs := make([]usageLook, len(pods)), make([]error, len(pods))
	var group errgroup.Group
	group.SetLimit(cri.MaxCalls)
	for i, d := range pods {
		group.Go(func() error {
			looks[i], errs[i] = m.engine.lookAtUsage(ctx, model.RefOf(d.Pod))
			return nil // What becomes of one keeps no other.
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
		found = append(found, PodUsage{Pod: model.RefOf(d.Pod), Containers: containers, Limits: podLimits(d.Pod, containers)})
	}
	return found, errors.Join(errs...)
}

// usageLook is what the runtime says of a pod at one time, its containers the newest first.
type usageLook struct {
	containers []*runtimeapi.Container
	stats      map[string]*runtimeapi.ContainerStats
}

func (x *Sessions) lookAtUsage(ctx context.Context, ref model.PodRef) (usageLook, error) {
	look := usageLook{stats: map[string]*runtimeapi.ContainerStats{}}
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

// usage has the newest container of each name, in the manifest's order. An init
// container that does not run is over and left out.
func (l *usageLook) usage(d *podspec.Desired, before map[string]*runtimeapi.CpuUsage) []ContainerUsage {
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

func (l *usageLook) one(name string, before map[string]*runtimeapi.CpuUsage) ContainerUsage {
	c := l.newest(name)
	u := ContainerUsage{Name: name, ID: c.GetId(), Restarts: snapshot.ParseCount(c.GetAnnotations()[criconfig.AnnotationRestartCount])}
	u.Running = c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING
	if s := l.stats[u.ID]; u.Running && s != nil {
		u.NanoCores = nanoCores(before[u.ID], s.GetCpu())
		if set := s.GetMemory().GetWorkingSetBytes(); set != nil {
			u.WorkingSet = &set.Value
		}
	}
	return u
}

// newest is the newest container of that name that has run; nil when none has.
func (l *usageLook) newest(name string) *runtimeapi.Container {
	for _, c := range l.containers {
		if c.GetMetadata().GetName() == name && c.GetState() != runtimeapi.ContainerState_CONTAINER_CREATED {
			return c
		}
	}
	return nil
}

// nanoCores is the use of processors as the runtime gives it, or else between two
// looks. Zero is no gift: containerd gives it to whoever asks first.
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
