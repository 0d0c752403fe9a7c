package eviction

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/sleep"
)

// measurePeriod is how often the machine is measured (kubelet: evictionMonitoringPeriod).
const measurePeriod = 10 * time.Second

// World is the environment of a Manager.
type World struct {
	// Measure measures the machine. Usage measures pods, DiskUsage also their files.
	Measure          func(context.Context) (*Measurement, error)
	Usage, DiskUsage func(context.Context, []*v1.Pod) (map[types.UID]*Usage, error)
	// RemoveGarbage removes unneeded records and logs. RemoveImages removes unused images.
	RemoveGarbage, RemoveImages func(context.Context) error
}

// Settings configure a Manager.
type Settings struct {
	Config
	// Now is the clock. Decisions are written to Log.
	Now func() time.Time
	Log *slog.Logger
}

// Pods are the pods of an agent.
type Pods interface {
	// Active returns the pods that were admitted and have not ended.
	Active(context.Context) []*v1.Pod
	// Evict ends a pod, and returns when it has ended. It returns NotEvictedError if the pod ends as soon anyway.
	Evict(context.Context, types.UID, *model.Eviction) error
	// Pressure sets the conditions of the node. It is called when they are known for the first time, even if there are
	// none, and when they have changed.
	Pressure([]v1.NodeConditionType)
}

// NotEvictedError is the error of an eviction that changes nothing.
type NotEvictedError struct{}

// Error returns the reason.
func (NotEvictedError) Error() string { return "the pod is ending, or all pods are being stopped" }

// Manager evicts pods while a resource runs out.
type Manager struct {
	world    World
	settings Settings
	pods     Pods

	tracker    *tracker
	pressure   Pressure
	conditions []v1.NodeConditionType
	// known reports that the conditions were measured completely, or that there are some.
	known bool
	// logged is the last text of each kind. It is not logged again.
	logged map[string]string
}

// New returns a Manager.
func New(w World, s Settings) *Manager {
	return &Manager{
		world: w, settings: s, tracker: newTracker(s.Thresholds), pressure: Pressure{}, logged: map[string]string{},
	}
}

// Run measures the machine periodically until the context ends. After an eviction it measures again at once.
func (m *Manager) Run(ctx context.Context, pods Pods) {
	m.pods = pods
	for {
		evicted, err := m.synchronize(ctx)
		if ctx.Err() != nil {
			return
		}
		m.logFailure(err)
		if !evicted && sleep.For(ctx, measurePeriod) != nil {
			return
		}
	}
}

// synchronize measures once and evicts at most one pod (kubelet: managerImpl.synchronize).
func (m *Manager) synchronize(ctx context.Context) (evicted bool, err error) {
	look, err := m.world.Measure(ctx)
	met, due := m.tracker.update(m.settings.Now(), look)
	m.updateConditions(met, look)
	m.logStarved(look, due)
	if len(due) == 0 {
		return false, err
	}
	remeasured := m.reclaim(ctx, due[0].Signal, look)
	if remeasured != nil {
		if look, due = remeasured, unresolved(due, remeasured); len(due) == 0 {
			m.settings.Log.Info("able to reduce resource pressure without evicting pods")
			return false, nil
		}
	}
	evicted, failed := m.evictOne(ctx, &due[0], look)
	return evicted, errors.Join(err, failed)
}

// updateConditions updates the conditions from the thresholds that are met, and logs changes. The first complete
// measurement is reported even if it finds none: the API server may have conditions from before.
func (m *Manager) updateConditions(met []Threshold, look *Measurement) {
	now := m.pressure.Update(m.settings.Now(), m.settings.Transition, met)
	changed := !slices.Equal(now, m.conditions)
	if changed {
		m.settings.Log.Warn("conditions of the node", "before", fmt.Sprint(m.conditions), "now", fmt.Sprint(now))
	}
	if changed || !look.Partial && !m.known {
		m.conditions, m.known = now, true
		m.pods.Pressure(now)
	}
}

// logStarved logs the thresholds for which pods are evicted from now on.
func (m *Manager) logStarved(look *Measurement, due []Threshold) {
	var names []string
	for i := range due {
		names = append(names, string(due[i].Signal))
	}
	if text := strings.Join(names, " "); m.isNew("starved", text) && text != "" {
		t := &due[0]
		left := look.lack(t)
		m.settings.Log.Warn("attempting to reclaim "+string(t.Signal.resource()),
			"event", "EvictionThresholdMet",
			"signals", text,
			"threshold", t.quantity(left.Capacity).String(),
			"available", left.available(t.Signal).String())
	}
}

// isNew reports whether a text of a kind differs from the last one.
func (m *Manager) isNew(kind, text string) bool {
	before := m.logged[kind]
	m.logged[kind] = text
	return text != before
}

func (m *Manager) logFailure(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if m.isNew("failure", text) && text != "" {
		m.settings.Log.Error("eviction", "error", text)
	}
}

// reclaim removes garbage from the disk that runs full, and measures again. It returns nil if the signal is not about a
// disk or the measurement failed (kubelet: buildSignalToNodeReclaimFuncs, reclaimNodeLevelResources). Images on a
// separate file system take no space on that of the node, so they are not removed for it.
func (m *Manager) reclaim(ctx context.Context, s Signal, look *Measurement) *Measurement {
	if s.condition() != v1.NodeDiskPressure {
		return nil
	}
	err := m.world.RemoveGarbage(ctx)
	if images, _ := look.counts(s); images {
		err = errors.Join(err, m.world.RemoveImages(ctx))
	}
	if err != nil && m.isNew("reclaim", err.Error()) {
		m.settings.Log.Warn("removing garbage", "error", err.Error())
	}
	again, err := m.world.Measure(ctx)
	if err != nil {
		return nil
	}
	return again
}

// evictOne evicts the first pod that can be evicted.
func (m *Manager) evictOne(ctx context.Context, t *Threshold, look *Measurement) (bool, error) {
	active := m.pods.Active(ctx)
	measure := m.world.Usage
	if t.Signal.condition() == v1.NodeDiskPressure {
		measure = m.world.DiskUsage
	}
	usage, err := measure(ctx, active)
	if err != nil {
		return false, fmt.Errorf("no pod is evicted, because the usage of the pods is unknown: %w", err)
	}
	evictable := slices.DeleteFunc(slices.Clone(active), func(pod *v1.Pod) bool {
		return usage[pod.UID] == nil || podspec.IsCritical(pod)
	})
	if len(evictable) == 0 {
		return false, errors.New("eviction thresholds have been met, but no pods are active to evict")
	}
	for _, pod := range rank(t.Signal, look, evictable, usage) {
		message, annotations := explain(t, look.lack(t), pod, usage[pod.UID])
		err = m.pods.Evict(ctx, pod.UID, &model.Eviction{
			Message: message, Annotations: annotations, Signal: string(t.Signal),
			At: m.settings.Now().UTC(), GracePeriodSeconds: m.settings.graceOf(t, pod),
		})
		if err == nil {
			return true, nil
		}
		err = fmt.Errorf("evicting pod %s: %w", model.RefOf(pod), err)
		if !errors.Is(err, NotEvictedError{}) {
			break
		}
	}
	return false, err
}

// graceOf returns how many seconds a pod has to stop. Pods that are evicted for a hard threshold have the least time
// (kubelet: managerImpl.synchronize).
func (c *Config) graceOf(t *Threshold, pod *v1.Pod) int64 {
	if t.Grace == 0 {
		return 0
	}
	return min(c.MaxGrace, ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, c.MaxGrace))
}
