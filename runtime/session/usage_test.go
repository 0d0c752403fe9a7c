package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
)

func cpuAt(timestamp int64, total uint64) *runtimeapi.CpuUsage {
	return &runtimeapi.CpuUsage{Timestamp: timestamp, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: total}}
}

func TestNanoCores(t *testing.T) {
	given := cpuAt(1_000_000_000, 5)
	given.UsageNanoCores = &runtimeapi.UInt64Value{Value: 42}
	nothing := cpuAt(1_000_000_000, 750_000_000)
	nothing.UsageNanoCores = &runtimeapi.UInt64Value{}
	for name, c := range map[string]struct {
		before, now *runtimeapi.CpuUsage
		want        *uint64
	}{
		"as the runtime gives it":        {nil, given, new(uint64(42))},
		"between two looks":              {cpuAt(500_000_000, 250_000_000), cpuAt(1_000_000_000, 750_000_000), new(uint64(1_000_000_000))},
		"the first sample returned zero": {cpuAt(500_000_000, 250_000_000), nothing, new(uint64(1_000_000_000))},
		"nothing was used":               {cpuAt(1, 7), cpuAt(2, 7), new(uint64(0))},
		"one sample":                     {nil, cpuAt(1, 7), nil},
		"the same look twice":            {cpuAt(1, 7), cpuAt(1, 7), nil},
		"a counter that began again":     {cpuAt(1, 7), cpuAt(2, 3), nil},
		"a runtime without counters":     {cpuAt(1, 7), &runtimeapi.CpuUsage{Timestamp: 2}, nil},
		"no answer":                      {cpuAt(1, 7), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, nanoCores(c.before, c.now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func container(id, name string, state runtimeapi.ContainerState, restarts string) *runtimeapi.Container {
	return &runtimeapi.Container{
		Id: id, State: state, Metadata: &runtimeapi.ContainerMetadata{Name: name},
		Annotations: map[string]string{"io.kubernetes.container.restartCount": restarts},
	}
}

func TestUsageOfNewestContainer(t *testing.T) {
	d := &podspec.Desired{Pod: &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "seed"}},
		Containers:     []v1.Container{{Name: "app"}, {Name: "dead"}, {Name: "new"}},
	}}}
	const running, exited = runtimeapi.ContainerState_CONTAINER_RUNNING, runtimeapi.ContainerState_CONTAINER_EXITED
	look := usageReading{
		containers: []*runtimeapi.Container{
			container("app-4", "app", runtimeapi.ContainerState_CONTAINER_CREATED, "4"),
			container("app-3", "app", running, "3"), container("app-2", "app", exited, "2"),
			container("seed-0", "seed", exited, "0"), container("dead-5", "dead", exited, "5"),
		},
		stats: map[string]*runtimeapi.ContainerStats{
			"app-3":  {Cpu: cpuAt(2, 9), Memory: &runtimeapi.MemoryUsage{WorkingSetBytes: &runtimeapi.UInt64Value{Value: 64}}},
			"dead-5": {Cpu: cpuAt(2, 9), Memory: &runtimeapi.MemoryUsage{WorkingSetBytes: &runtimeapi.UInt64Value{Value: 64}}},
		},
	}
	want := []ContainerUsage{
		{
			Name:       "app",
			Type:       podspec.Regular,
			ID:         "app-3",
			Running:    true,
			Restarts:   3,
			NanoCores:  new(uint64(2_000_000_000)),
			WorkingSet: new(uint64(64)),
		},
		{Name: "dead", Type: podspec.Regular, ID: "dead-5", Restarts: 5},
		{Name: "new", Type: podspec.Regular},
	}
	got := look.usage(d, map[string]*runtimeapi.CpuUsage{"app-3": cpuAt(1, 7)})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
