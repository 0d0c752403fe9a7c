package eviction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/model"
)

// lab is a Manager with a simulated machine and pods.
type lab struct {
	*Manager
	now  time.Time
	log  bytes.Buffer
	look Measurement
	pods []*v1.Pod
	// usage is the use of memory or disk in MiB. A pod that is not in it has nothing on the node.
	usage map[types.UID]int64
	// garbage and images are the amounts that their removal frees on nodefs and imagefs.
	garbage, images int64
	// done lists the actions in order.
	done []string
	// why is the reason of the last eviction.
	why  *model.Eviction
	fail error
	// broken is the error of the measurements, which have no values then.
	broken error
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{
		now:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		usage: map[types.UID]int64{},
		look: Measurement{Left: amounts(map[Signal]Amount{
			MemoryAvailable:  {1 << 30, 4 << 30},
			NodeFsAvailable:  {50 << 20, 100 << 20},
			ImageFsAvailable: {50 << 20, 100 << 20},
		})},
	}
	world := World{
		Measure: func(context.Context) (*Measurement, error) {
			if l.broken != nil {
				return &Measurement{Partial: true}, l.broken
			}
			return &l.look, nil
		},
		Usage: func(context.Context, []*v1.Pod) (map[types.UID]*Usage, error) {
			return l.measured(func(n int64) ContainerUsage { return ContainerUsage{Name: "a", Memory: new(n)} })
		},
		DiskUsage: func(context.Context, []*v1.Pod) (map[types.UID]*Usage, error) {
			return l.measured(func(n int64) ContainerUsage {
				return ContainerUsage{Name: "a", Root: &Disk{}, Logs: &Disk{n, n}}
			})
		},
		RemoveGarbage: func(context.Context) error {
			l.done = append(l.done, "garbage")
			l.give(NodeFsAvailable, l.garbage)
			return nil
		},
		RemoveImages: func(context.Context) error {
			l.done = append(l.done, "images")
			l.give(ImageFsAvailable, l.images)
			return nil
		},
	}
	l.Manager = New(world, Settings{
		Config: Config{Thresholds: thresholds(t, Default), Transition: DefaultTransition}, Now: func() time.Time { return l.now }, Log: slog.New(slog.NewTextHandler(&l.log, nil)),
	})
	l.Manager.pods = l
	return l
}

// measured returns the usage of the pods, each with one container.
func (l *lab) measured(of func(bytes int64) ContainerUsage) (map[types.UID]*Usage, error) {
	all := map[types.UID]*Usage{}
	for uid, n := range l.usage {
		all[uid] = &Usage{Containers: []ContainerUsage{of(n << 20)}}
	}
	return all, l.fail
}

func (l *lab) give(s Signal, mib int64) {
	l.look.Left[s][0].Available += mib << 20
}

func (l *lab) Active(context.Context) []*v1.Pod { return l.pods }

// Evict frees what the pod uses.
func (l *lab) Evict(_ context.Context, uid types.UID, why *model.Eviction) error {
	l.done, l.why = append(l.done, "evict "+string(uid)), why
	for i, pod := range l.pods {
		if pod.UID == uid {
			l.pods = append(l.pods[:i:i], l.pods[i+1:]...)
			break
		}
	}
	l.give(Signal(why.Signal), l.usage[uid])
	return nil
}

func (l *lab) Pressure(conditions []v1.NodeConditionType) {
	l.done = append(l.done, fmt.Sprint(conditions))
}

func (l *lab) pod(name string, priority int32, mib int64) {
	pod := &v1.Pod{Spec: v1.PodSpec{Priority: &priority, Containers: []v1.Container{{Name: "a"}}}}
	pod.Name, pod.UID = name, types.UID(name)
	l.pods = append(l.pods, pod)
	if mib >= 0 {
		l.usage[pod.UID] = mib
	}
}

// looks runs synchronize n times, and returns the actions.
func (l *lab) looks(t *testing.T, n int) string {
	t.Helper()
	l.done = nil
	for range n {
		l.now = l.now.Add(measurePeriod)
		before := strings.Count(strings.Join(l.done, " "), "evict")
		evicted, err := l.synchronize(t.Context())
		if err != nil {
			l.done = append(l.done, "error")
		}
		if after := strings.Count(strings.Join(l.done, " "), "evict"); evicted != (after > before) {
			t.Errorf("reported an eviction: %t", evicted)
		}
	}
	return strings.Join(l.done, ", ")
}

// TestManager covers the kubelet's TestMemoryPressure, TestDiskPressureNodeFs, TestNodeReclaimFuncs, TestPIDPressure
// and TestStaticCriticalPodsAreNotEvicted: garbage is removed first, then one pod at a time is evicted, until no
// threshold is met.
func TestManager(t *testing.T) {
	const critical = 2_000_000_000
	for name, c := range map[string]struct {
		set   func(*lab)
		looks int
		want  string
	}{
		"all is well": {func(*lab) {}, 3, "[]"},
		"memory: one after the other, without garbage": {
			func(l *lab) { l.give(MemoryAvailable, -1000) },
			4,
			"[MemoryPressure], evict b, evict a",
		},
		"memory of all pods": {
			func(l *lab) {
				l.settings.Thresholds = WithAllocatable(l.settings.Thresholds)
				l.tracker = newTracker(l.settings.Thresholds)
				l.look.Left[AllocatableMemoryAvailable] = []Amount{{40 << 20, 1 << 30}}
			},
			3,
			"[MemoryPressure], evict b, evict a",
		},
		"memory: the first is enough": {func(l *lab) { l.give(MemoryAvailable, -950) }, 4, "[MemoryPressure], evict b"},
		"disk: garbage is enough": {
			func(l *lab) { l.give(NodeFsAvailable, -45); l.garbage = 10 },
			3,
			"[DiskPressure], garbage, images",
		},
		"disk: garbage, and a pod": {
			func(l *lab) { l.give(NodeFsAvailable, -49); l.garbage = 1 },
			3,
			"[DiskPressure], garbage, images, evict b",
		},
		"disk of the node, images have their own": {
			func(l *lab) { l.give(NodeFsAvailable, -45); l.look.OwnImageFs = true; l.garbage = 10 },
			1,
			"[DiskPressure], garbage",
		},
		"disk of images: unused ones are enough": {
			func(l *lab) { l.give(ImageFsAvailable, -45); l.look.OwnImageFs = true; l.images = 10 },
			2,
			"[DiskPressure], garbage, images",
		},
		"critical pods stay": {
			func(l *lab) { *l.pods[1].Spec.Priority = critical; l.give(MemoryAvailable, -1000) },
			2,
			"[MemoryPressure], evict a, error",
		},
		"pods without anything on the node stay": {
			func(l *lab) { delete(l.usage, "b"); l.give(MemoryAvailable, -1000) },
			2,
			"[MemoryPressure], evict a, error",
		},
		"no pods": {func(l *lab) { l.pods = nil; l.give(MemoryAvailable, -1000) }, 2, "[MemoryPressure], error, error"},
		"the runtime does not answer": {
			func(l *lab) { l.fail = errors.New("down"); l.give(MemoryAvailable, -1000) },
			2,
			"[MemoryPressure], error, error",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.pod("a", 0, 30)
			l.pod("b", 0, 50)
			c.set(l)
			if got := l.looks(t, c.looks); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestManagerLogs checks that each message is logged once, and that the conditions end five minutes after their cause.
func TestManagerLogs(t *testing.T) {
	l := newLab(t)
	l.give(MemoryAvailable, -1000)
	if got := l.looks(t, 5); got != "[MemoryPressure], error, error, error, error, error" {
		t.Error(got)
	}
	l.give(MemoryAvailable, 1000)
	if got := l.looks(t, 29); got != "" {
		t.Error(got)
	}
	if got := l.looks(t, 1); got != "[]" {
		t.Error(got)
	}
	text := l.log.String()
	if strings.Count(text, "attempting to reclaim memory") != 1 || strings.Count(text, "conditions of the node") != 2 ||
		strings.Count(text, "\n") != 3 {
		t.Error(text)
	}
}

// TestManagerWithoutMeasurement checks that the conditions are reported once they are known, and that they stay while
// nothing can be measured: nothing starts or ends then.
func TestManagerWithoutMeasurement(t *testing.T) {
	l := newLab(t)
	l.pod("a", 0, 10)
	l.broken = errors.New("no values")
	if got := l.looks(t, 2); got != "error, error" {
		t.Error(got)
	}
	l.broken = nil
	if got := l.looks(t, 2); got != "[]" {
		t.Error(got)
	}
	l.give(MemoryAvailable, -1000)
	if got := l.looks(t, 1); got != "[MemoryPressure], evict a" {
		t.Error(got)
	}
	l.pod("b", 0, 10)
	l.broken = errors.New("no values")
	if got := l.looks(t, 40); got != strings.Repeat("error, ", 39)+"error" {
		t.Error(got)
	}
	l.broken = nil
	if got := l.looks(t, 1); got != "evict b" {
		t.Error(got)
	}
}

// TestManagerThatRuns checks that Run measures at once, and ends with its context.
func TestManagerThatRuns(t *testing.T) {
	l := newLab(t)
	l.pod("a", 0, 1000)
	l.give(MemoryAvailable, -1000)
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	look := l.world.Measure
	l.world.Measure = func(ctx context.Context) (*Measurement, error) {
		if looks++; looks == 2 {
			cancel() // After an eviction, Run measures again at once.
		}
		return look(ctx)
	}
	l.Run(ctx, l)
	if got := strings.Join(l.done, ", "); got != "[MemoryPressure], evict a" {
		t.Error(got)
	}
}
