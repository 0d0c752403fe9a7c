package plan

import (
	"testing"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// gone removes everything of a pod except its record.
func gone(applied *podspec.Desired, why *model.Eviction) func(*Input) {
	return func(in *Input) {
		observed := newBench(in.Desired).Observed
		observed.Memory.Applied, observed.Memory.Eviction = applied, why
		in.Observed = observed
	}
}

// stopped stops everything of a pod.
func stopped(in *Input) {
	for i := range in.Observed.Containers {
		in.Observed.Containers[i].State = model.Exited
	}
	in.Observed.Memory.LastRun = &model.LastRun{}
	for i := range in.Observed.Sandboxes {
		s := &in.Observed.Sandboxes[i]
		s.State = model.SandboxNotReady
		in.Observed.Memory.LastRun.Stopped = append(in.Observed.Memory.LastRun.Stopped, s.ID)
	}
}

// TestEvictedForItsLimit checks the reason of the steps for a pod that exceeds its own limit.
func TestEvictedForItsLimit(t *testing.T) {
	pod := sized(t, "a", "1")
	for own, want := range map[bool]string{
		true:  "the pod is evicted: it exceeds its limit of disk space",
		false: "the pod is evicted: nodefs.available is below its threshold",
	} {
		in := newBench(pod).runs(pod).input()
		in.Options.Evict = &model.Eviction{Message: "m", Signal: "nodefs.available", OwnLimit: own, At: modeltest.Noon()}
		if p := Make(in); len(p.Steps) == 0 || p.Steps[0].Message != want || p.Steps[0].Reason != model.Evicted {
			t.Errorf("%+v", p.Steps)
		}
	}
}

// TestEvictionGrace checks that an evicted pod has the grace period of its eviction, and at least one second.
func TestEvictionGrace(t *testing.T) {
	pod := sized(t, "a", "1")
	for grace, want := range map[int64]int64{0: 1, 1: 1, 25: 25} {
		in := newBench(pod).runs(pod).input()
		in.Options.Evict = &model.Eviction{Signal: "memory.available", GracePeriodSeconds: grace, At: modeltest.Noon()}
		if p := Make(in); len(p.Steps) == 0 || *p.Steps[0].GracePeriodSeconds != want {
			t.Errorf("%d: %+v", grace, p.Steps)
		}
	}
}

// TestEvicted checks the plan of an evicted pod by its leftovers and the desired manifest.
func TestEvicted(t *testing.T) {
	const stops, removed = "StopContainer StopSandbox Evicted", "RemoveContainer RemoveSandbox RemoveVolume RemoveCgroup Evicted"
	why := &model.Eviction{Message: "The node was low on resource: pids. ", Signal: "pid.available", At: modeltest.Noon().Add(-time.Minute)}
	done := &model.Eviction{Message: why.Message, Signal: why.Signal, At: why.At, Done: true}
	small, large := sized(t, "a", "1"), sized(t, "a", "5")
	for name, c := range map[string]struct {
		set  func(*Input)
		want string
	}{
		"now":                           {func(in *Input) { in.Options.Evict = why }, stops},
		"cut off before the first stop": {func(in *Input) { in.Observed.Memory.Eviction = why }, stops},
		"stopped":                       {func(in *Input) { in.Observed.Memory.Eviction = why; stopped(in) }, removed},
		"cut off before the volumes":    {func(in *Input) { gone(small, why)(in) }, "RemoveVolume RemoveCgroup Evicted"},
		"all leftovers removed":         {gone(small, done), "Evicted"},
		"evicted again":                 {func(in *Input) { gone(small, done)(in); in.Options.Evict = why }, "Evicted"},
		"a restart": {
			func(in *Input) { gone(small, done)(in); in.Options.Restart = []string{"a"} },
			"CheckContainer RunSandbox StartContainer",
		},
		"another manifest": {func(in *Input) { gone(large, done)(in) }, "CheckContainer RunSandbox StartContainer"},
		"a restart before all is removed": {
			func(in *Input) { in.Observed.Memory.Eviction = why; in.Options.Restart = []string{"a"} },
			stops + " unapplied",
		},
		"not admitted after the eviction": {func(in *Input) { gone(small, done)(in); in.Desired = large }, "OutOfcpu rejected"},
		"a stop of all pods leaves it":    {func(in *Input) { gone(small, done)(in); in.Options.Stop = true }, ""},
		"a deletion": {func(in *Input) {
			in.Desired = nil
			in.Observed.Memory.Eviction = why
			in.Observed.Memory.Generation = 1
		}, "StopContainer StopSandbox RemoveContainer RemoveSandbox RemoveVolume RemoveCgroup ArchiveLogs"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(small).runs(small)
			in := b.input()
			c.set(in)
			p := Make(in)
			if got := result(p); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
			for i := range p.Steps {
				if s := &p.Steps[i]; s.Kind == StopContainer && in.Desired != nil && *s.GracePeriodSeconds != 1 {
					t.Errorf("grace period %d seconds", *s.GracePeriodSeconds)
				}
			}
		})
	}
}
