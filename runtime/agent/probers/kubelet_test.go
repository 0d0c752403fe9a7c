package probers

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

// The tests of this file have the cases of the kubelet's pkg/kubelet/prober/worker_test.go, with the same names.
// restarts_test.go has those of containers that end, manager_test.go those of
// pkg/kubelet/prober/prober_manager_test.go. These do not apply:
//
//   - TestDoProbe, "No status" and "No container status": a container that no pass has observed has no worker here.
//     "Pod failed": the agent forgets the probes of a pod that has finished.
//   - TestChangeContainerStatusOnKubeletRestart, the cases without the feature: they keep the state of a container by
//     leaving its result out. Here the checkpoint has the verdict.

const (
	good    = model.ProbeSuccess
	bad     = model.ProbeFailure
	unknown = model.ProbeUnknown
)

// TestDoProbe checks that running containers are probed and others have no worker, and that a deletion leaves only
// readiness (kubelet: TestDoProbe; its phases and container states are Running or not here).
func TestDoProbe(t *testing.T) {
	for _, kind := range model.ProbeTypes() {
		for name, c := range map[string]struct {
			change func(*Observation)
			ran    bool
		}{
			"runs":            {func(*Observation) {}, true},
			"does not run":    {func(s *Observation) { s.Running = nil }, false},
			"another runs":    {func(s *Observation) { s.Running[0].Name = "other" }, false},
			"is deleted":      {func(s *Observation) { s.Deleting = true }, kind == model.Readiness},
			"long since":      {func(s *Observation) { s.Running[0].StartedAt = noon.Add(-24 * time.Hour) }, true},
			"negative delay":  {func(s *Observation) { probeOf(s, kind).InitialDelaySeconds = -100 }, true},
			"without a probe": {func(s *Observation) { s.Desired = podOf(v1.Container{Name: "a"}) }, false},
		} {
			l := one(t, kind, every(10))
			c.change(&l.seen)
			l.Sync(l.now, l.seen)
			ran := l.tick()
			if (len(ran) == 1) != c.ran || (len(l.Verdicts()) == 1) != c.ran {
				t.Errorf("%s, %s: asked %v, %v", kind, name, ran, l.Verdicts())
			}
			if c.ran {
				l.want(kind, good, map[bool]int32{true: 0, false: 1}[kind == model.Startup], name)
			}
		}
	}
}

func probeOf(s *Observation, kind model.ProbeType) *v1.Probe {
	return model.ProbeOf(&s.Desired.Pod.Spec.Containers[0], kind)
}

// TestSidecarsAreProbed checks that sidecars have workers, too (kubelet:
// TestDoProbe_TerminatedRestartableInitContainerWithRestartPolicyNever).
func TestSidecarsAreProbed(t *testing.T) {
	l := one(t, model.Readiness, every(10))
	always := v1.ContainerRestartPolicyAlways
	l.seen.Desired.Pod.Spec.InitContainers = []v1.Container{
		{Name: "s", RestartPolicy: &always, StartupProbe: every(10), LivenessProbe: every(10)},
	}
	l.seen.Running = append(l.seen.Running, Running{Name: "s", ID: "2", StartedAt: noon})
	l.Sync(l.now, l.seen)
	if ran := l.tick(); !slices.Equal(ran, []model.ProbeType{model.Readiness, model.Startup}) {
		t.Errorf("asked %v", ran)
	}
	if ran := l.tick(); !slices.Equal(ran, []model.ProbeType{model.Liveness}) {
		t.Errorf("once it has started: %v", ran)
	}
}

// TestInitialDelay (kubelet: TestInitialDelay).
func TestInitialDelay(t *testing.T) {
	for kind, initial := range map[model.ProbeType]model.ProbeResult{model.Liveness: good, model.Readiness: bad, model.Startup: unknown} {
		l := one(t, kind, with(every(3), func(p *v1.Probe) { p.InitialDelaySeconds = 10 }))
		l.now = noon.Add(10*time.Second - 1)
		if ran := l.tick(); len(ran) > 0 {
			t.Errorf("%s: asked during its delay", kind)
		}
		l.want(kind, initial, 0, "during its delay")
		if l.advance(); !l.now.Equal(noon.Add(10 * time.Second)) {
			t.Errorf("%s: first asked at %s", kind, l.now.Sub(noon))
		}
		if l.tick(); l.record(kind).Result != good {
			t.Errorf("%s, after its delay: %+v", kind, l.record(kind))
		}
	}
}

// TestFailureThreshold (kubelet: TestFailureThreshold).
func TestFailureThreshold(t *testing.T) {
	l := one(t, model.Readiness, every(10))
	for range 2 {
		l.fails[model.Readiness] = false
		for i := range int32(3) {
			l.ticks(1)
			l.want(model.Readiness, good, i+1, "passes")
		}
		l.fails[model.Readiness] = true
		for i := range int32(5) {
			l.ticks(1)
			l.want(model.Readiness, map[bool]model.ProbeResult{true: good, false: bad}[i < 2], i+1, "fails")
		}
	}
}

// TestSuccessThreshold (kubelet: TestSuccessThreshold).
func TestSuccessThreshold(t *testing.T) {
	l := one(t, model.Readiness, with(every(10), func(p *v1.Probe) { p.SuccessThreshold, p.FailureThreshold = 3, 1 }))
	for range 2 {
		l.fails[model.Readiness] = false
		for i := range int32(5) {
			l.ticks(1)
			l.want(model.Readiness, map[bool]model.ProbeResult{true: bad, false: good}[i < 2], i+1, "passes")
		}
		l.fails[model.Readiness] = true
		l.ticks(1)
		l.want(model.Readiness, bad, 1, "fails once")
	}
}

// TestStartupProbeThresholds checks that a startup probe is on hold once it is decided either way, and counts from zero
// again (kubelet: TestStartupProbeSuccessThreshold, TestStartupProbeFailureThreshold,
// TestResultRunOnStartupCheckFailure).
func TestStartupProbeThresholds(t *testing.T) {
	l := one(t, model.Startup, every(10))
	l.ticks(1)
	l.want(model.Startup, good, 0, "passes")
	if _, wake := l.Next(l.now.Add(time.Hour)); !l.record(model.Startup).OnHold || !wake.IsZero() {
		t.Errorf("after a success: %+v, again at %s", l.record(model.Startup), wake)
	}
	l = one(t, model.Startup, every(10))
	l.fails[model.Startup] = true
	l.ticks(2)
	l.want(model.Startup, unknown, 2, "fails")
	l.ticks(1)
	l.want(model.Startup, bad, 0, "fails for good")
	l.now = l.now.Add(time.Hour)
	if ran := l.tick(); len(ran) > 0 || !l.record(model.Startup).OnHold {
		t.Errorf("after three failures: asked %v, %+v", ran, l.record(model.Startup))
	}
}

// TestResultRunOnLivenessCheckFailure (kubelet: the test of that name).
func TestResultRunOnLivenessCheckFailure(t *testing.T) {
	l := one(t, model.Liveness, every(10))
	l.ticks(1)
	l.want(model.Liveness, good, 1, "passes")
	l.fails[model.Liveness] = true
	l.ticks(2)
	l.want(model.Liveness, good, 2, "fails twice")
	l.ticks(1)
	l.want(model.Liveness, bad, 0, "fails for good")
}

// TestOnHold checks that a decided probe does not run until another container runs. That container starts without the
// failures of the earlier one (kubelet: TestOnHoldOnLivenessOrStartupCheckFailure).
func TestOnHold(t *testing.T) {
	for _, kind := range []model.ProbeType{model.Liveness, model.Startup} {
		l := one(t, kind, with(every(10), func(p *v1.Probe) { p.FailureThreshold = 1 }))
		l.fails[kind] = true
		l.tick()
		if r := l.record(kind); r.Result != bad || !r.OnHold || !l.last.NeedsPass {
			t.Errorf("%s failed: %+v, %+v", kind, r, l.last)
		}
		l.fails[kind], l.now = false, l.now.Add(5*time.Second)
		l.Sync(l.now, l.seen)
		if ran := l.tick(); len(ran) > 0 {
			t.Errorf("%s on hold was asked", kind)
		}
		l.restart("2")
		l.want(kind, model.InitialProbe(kind).Result, 0, "of a new container")
		l.tick()
		if r := l.record(kind); r.Result != good || r.OnHold != (kind == model.Startup) {
			t.Errorf("%s of the next container: %+v", kind, r)
		}
	}
}

// TestCleanUp checks that removed probes are forgotten, even if removed twice, and that their results are ignored
// (kubelet: TestCleanUp).
func TestCleanUp(t *testing.T) {
	for name, leave := range map[string]func(l *lab){
		"the pod is gone":          func(l *lab) { l.Forget("u"); l.Forget("u") },
		"the container is gone":    func(l *lab) { l.seen.Running = nil; l.Sync(l.now, l.seen) },
		"the probe is gone":        func(l *lab) { l.seen.Desired = podOf(v1.Container{Name: "a"}); l.Sync(l.now, l.seen) },
		"another container runs":   func(l *lab) { l.restart("2") },
		"the pod is being deleted": func(l *lab) { l.seen.Deleting = true; l.Sync(l.now, l.seen) },
	} {
		l := one(t, model.Liveness, with(every(10), func(p *v1.Probe) { p.FailureThreshold = 1 }))
		asks, _ := l.Next(l.now)
		leave(l)
		if change := l.answer(asks[0], probe.Failure); change.NeedsWrite() || change.NeedsPass {
			t.Errorf("%s: its answer is %+v", name, change)
		}
		if v := l.Verdicts(); name != "another container runs" && len(v) > 0 {
			t.Errorf("%s: left is %+v", name, v)
		}
	}
}

// TestProbesDisabledByStarted checks that liveness and readiness wait for the startup probe, which ends when it has
// passed (kubelet: TestLivenessProbeDisabledByStarted, TestStartupProbeDisabledByStarted).
func TestProbesDisabledByStarted(t *testing.T) {
	l := newLab(t, map[model.ProbeType]*v1.Probe{model.Startup: every(10), model.Liveness: every(10), model.Readiness: every(10)})
	l.fails = map[model.ProbeType]bool{model.Startup: true, model.Liveness: true}
	for range 2 {
		if ran := l.tick(); !slices.Equal(ran, []model.ProbeType{model.Startup}) {
			t.Errorf("before it has started: %v", ran)
		}
		l.advance()
	}
	l.want(model.Liveness, good, 0, "before it has started")
	l.fails[model.Startup] = false
	l.tick()
	for i := range int32(2) {
		if ran := l.tick(); !slices.Equal(ran, []model.ProbeType{model.Liveness, model.Readiness}) {
			t.Errorf("once it has started: %v", ran)
		}
		l.want(model.Liveness, good, i+1, "fails")
		l.advance()
	}
	l.want(model.Startup, good, 0, "has passed")
}

// TestErrorsDoNotCount checks that a probe that could not run is repeated a period later (kubelet: doProbe
// discards the result).
func TestErrorsDoNotCount(t *testing.T) {
	l := one(t, model.Readiness, every(10))
	l.ticks(1)
	asks, _ := l.Next(l.now)
	change := l.Done(l.now, asks[0], probe.Result{Verdict: probe.Unknown, Output: "no shell", Message: "no shell"})
	if r := l.record(model.Readiness); r.Result != good || r.Run != 1 || r.Message != "no shell" || change.NeedsPass || !change.IsEvent {
		t.Errorf("%+v, %+v", r, change)
	}
	if _, wake := l.Next(l.now); !wake.Equal(noon.Add(20 * time.Second)) {
		t.Errorf("asked again at %s", wake.Sub(noon))
	}
}

// TestAgentRestart checks that a container keeps its state if it has a record, and otherwise starts as a new one,
// sidecars too (kubelet: TestChangeContainerStatusOnKubeletRestart, with the feature and with the checkpoint in place
// of the status).
func TestAgentRestart(t *testing.T) {
	for _, kind := range model.ProbeTypes() {
		for _, sidecar := range []bool{true, false} {
			for _, known := range []bool{true, false} {
				l := one(t, kind, with(every(10), func(p *v1.Probe) { p.InitialDelaySeconds = 1000 }))
				l.Set = New(noon.Add(time.Minute), func() float64 { return 0 })
				if spec := &l.seen.Desired.Pod.Spec; sidecar {
					always := v1.ContainerRestartPolicyAlways
					spec.InitContainers, spec.Containers = spec.Containers, []v1.Container{{Name: "main"}}
					spec.InitContainers[0].RestartPolicy = &always
				}
				want := model.InitialProbe(kind).Result
				if known {
					want = good
					l.seen.Running[0].Records = records{kind: {Result: good, Last: good, CountedAt: noon, OnHold: kind == model.Startup}}
				}
				if unkept := l.Sync(noon.Add(time.Minute), l.seen); len(unkept) > 0 {
					t.Errorf("results to record: %+v", unkept)
				}
				l.want(kind, want, 0, "after a restart")
			}
		}
	}
}
