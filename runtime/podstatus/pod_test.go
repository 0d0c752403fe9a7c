package podstatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// podOf returns the state of a world at noon.
func podOf(w *modeltest.World) *Pod {
	return New(&Input{Desired: w.Desired, Observed: w.Observed, Now: modeltest.Noon()})
}

func statusOf(w *modeltest.World) v1.PodStatus { return Of(podOf(w)) }

// web returns a world without any part of the pod.
func web(t *testing.T, spec string) *modeltest.World {
	t.Helper()
	return modeltest.New(modeltest.Load(t, modeltest.Pod(spec)))
}

// policy returns a pod with one container and a restart policy.
func policy(t *testing.T, p v1.RestartPolicy) *modeltest.World {
	t.Helper()
	return web(t, "  restartPolicy: "+string(p)+"\n  containers: [{name: app, image: i:1}]\n")
}

func idOf(c *model.Container) string {
	if c == nil {
		return ""
	}
	return c.ID
}

// TestNewPutsTheNewestFirst checks that sandboxes are sorted by attempt, and records by sandbox and attempt, whatever
// their order and the clock are.
func TestNewPutsTheNewestFirst(t *testing.T) {
	w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxNotReady).Sandbox("s1", 1, model.SandboxReady)
	w.Container("s1", "app", 0, model.Running)
	w.Container("s0", "app", 3, model.Exited).CreatedAt = modeltest.Noon().Add(time.Hour)
	w.Container("s1", "app", 1, model.Exited)
	p := podOf(w)
	var sandboxes, records []string
	for _, s := range p.Sandboxes {
		sandboxes = append(sandboxes, s.ID)
	}
	for _, c := range p.Containers {
		records = append(records, c.ID)
	}
	if diff := cmp.Diff([]string{"s1", "s0"}, sandboxes); diff != "" {
		t.Errorf("sandboxes (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"app-1-of-s1", "app-0-of-s1", "app-3-of-s0"}, records); diff != "" {
		t.Errorf("records (-want +got)\n%s", diff)
	}
	if p.Active != "s1" {
		t.Errorf("the pod lives in %q", p.Active)
	}
}

// TestNothingDesired checks that a pod that is deleted has records, but neither manifest nor phase.
func TestNothingDesired(t *testing.T) {
	w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	for name, d := range map[string]*podspec.Desired{"nothing": nil, "a record without a manifest": {}} {
		p := New(&Input{Desired: d, Observed: w.Observed, Now: modeltest.Noon()})
		if p.Manifest != nil || p.Phase != "" || !p.AnyRunning() {
			t.Errorf("%s: manifest %v, phase %q, %d records", name, p.Manifest, p.Phase, len(p.Containers))
		}
	}
}

// TestRecordsAreFoundByName checks the search in any sandbox, in the active one, and among exited records.
func TestRecordsAreFoundByName(t *testing.T) {
	for name, c := range map[string]struct {
		world                   func(w *modeltest.World)
		newest, current, exited string
	}{
		"no record": {func(w *modeltest.World) { w.Sandbox("s0", 0, model.SandboxReady) }, "", "", ""},
		"the container runs": {func(w *modeltest.World) {
			w.Sandbox("s0", 0, model.SandboxReady).Container("s0", "app", 0, model.Running)
		}, "app-0-of-s0", "app-0-of-s0", ""},
		"the container runs again": {func(w *modeltest.World) {
			w.Sandbox("s0", 0, model.SandboxReady).Container("s0", "app", 0, model.Exited)
			w.Container("s0", "app", 1, model.Running)
		}, "app-1-of-s0", "app-1-of-s0", "app-0-of-s0"},
		"the sandbox is not ready": {func(w *modeltest.World) {
			w.Sandbox("s0", 0, model.SandboxNotReady).Container("s0", "app", 0, model.Exited)
		}, "app-0-of-s0", "", "app-0-of-s0"},
		"the container ran in an earlier sandbox": {func(w *modeltest.World) {
			w.Sandbox("s0", 0, model.SandboxNotReady).Sandbox("s1", 1, model.SandboxReady).Container("s0", "app", 0, model.Exited)
		}, "app-0-of-s0", "", "app-0-of-s0"},
		"another one runs": {func(w *modeltest.World) {
			w.Sandbox("s0", 0, model.SandboxReady).Container("s0", "log", 0, model.Running)
		}, "", "", ""},
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod))
		c.world(w)
		p := podOf(w)
		got := []string{idOf(p.Newest("app")), idOf(p.Current("app")), idOf(p.NewestExited("app"))}
		if diff := cmp.Diff([]string{c.newest, c.current, c.exited}, got); diff != "" {
			t.Errorf("%s: newest, current and exited (-want +got)\n%s", name, diff)
		}
	}
}

// TestInitializationProgress checks by the records of regular containers whether one existed, and whether
// initialization is over.
func TestInitializationProgress(t *testing.T) {
	for name, c := range map[string]struct {
		container, sandbox string
		state              model.ContainerState
		any, initialised   bool
	}{
		"an init container":           {"seed", "s1", model.Running, false, false},
		"created":                     {"app", "s1", model.Created, true, true},
		"running":                     {"app", "s1", model.Running, true, true},
		"exited":                      {"app", "s1", model.Exited, true, false},
		"of unknown state":            {"app", "s1", model.Unknown, false, false},
		"running in another sandbox":  {"app", "s0", model.Running, true, false},
		"a container of another name": {"other", "s1", model.Running, false, false},
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxNotReady).Sandbox("s1", 1, model.SandboxReady)
		w.Container(c.sandbox, c.container, 0, c.state)
		p := podOf(w)
		if p.AnyRegular() != c.any || p.Initialised() != c.initialised {
			t.Errorf("%s: any regular %t, initialised %t", name, p.AnyRegular(), p.Initialised())
		}
		if p.AnyRunning() != (c.state == model.Running) {
			t.Errorf("%s: any running %t", name, p.AnyRunning())
		}
	}
}

// TestNextAttempt checks that it is above the newest record that has run, the logs if there is none, the records of
// other tools, and reserved attempts. A container that was created and never started does not count.
func TestNextAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		world func(w *modeltest.World)
		want  uint32
	}{
		"nothing":       {func(*modeltest.World) {}, 0},
		"a record":      {func(w *modeltest.World) { w.Container("s0", "app", 4, model.Exited) }, 5},
		"a log":         {func(w *modeltest.World) { w.LogAttempts = map[string]uint32{"app": 2} }, 3},
		"another's log": {func(w *modeltest.World) { w.LogAttempts = map[string]uint32{"log": 2} }, 0},
		"a record and an older log": {func(w *modeltest.World) {
			w.LogAttempts = map[string]uint32{"app": 9}
			w.Container("s0", "app", 1, model.Exited)
		}, 2},
		"a replacement not started": {func(w *modeltest.World) {
			w.Container("s0", "app", 1, model.Running)
			w.Container("s0", "app", 2, model.Created)
		}, 2},
		"a replacement, not started, of an exited container": {func(w *modeltest.World) {
			w.Container("s0", "app", 1, model.Exited)
			w.Container("s0", "app", 2, model.Created)
		}, 2},
		"the first one not started": {func(w *modeltest.World) {
			w.LogAttempts = map[string]uint32{"app": 0}
			w.Container("s0", "app", 0, model.Created)
		}, 0},
		"a kubelet's not started": {func(w *modeltest.World) {
			w.Container("s0", "app", 1, model.Running)
			w.Container("s0", "app", 6, model.Created).SpecHash = ""
		}, 7},
		"a start that the runtime gave up": {func(w *modeltest.World) {
			w.Container("s0", "app", 1, model.Exited)
			w.Container("s0", "app", 2, model.Unknown)
		}, 3},
		"an attempt that is taken": {func(w *modeltest.World) { w.Reserved = map[string]uint32{"app": 3} }, 4},
		"a lower one that is taken": {func(w *modeltest.World) {
			w.Reserved = map[string]uint32{"app": 3}
			w.Container("s0", "app", 8, model.Exited)
		}, 9},
		"the sandbox's that is taken": {func(w *modeltest.World) { w.Reserved = map[string]uint32{"": 3} }, 0},
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxReady)
		c.world(w)
		if got := podOf(w).NextAttempt("app"); got != c.want {
			t.Errorf("%s: attempt %d, not %d", name, got, c.want)
		}
	}
}

// TestAwaitsRestart checks that it holds while the container that podctl stopped is the last one that ran.
func TestAwaitsRestart(t *testing.T) {
	for name, c := range map[string]struct {
		stopped string
		later   model.ContainerState
		want    bool
	}{
		"stopped to run again":        {"app-0-of-s0", "", true},
		"ended by itself":             {"", "", false},
		"a replacement is created":    {"app-0-of-s0", model.Created, true},
		"a replacement runs":          {"app-0-of-s0", model.Running, false},
		"a replacement has ended":     {"app-0-of-s0", model.Exited, false},
		"something else was stopped":  {"app-7-of-s0", "", false},
		"the replacement was stopped": {"app-1-of-s0", model.Exited, true},
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxReady)
		w.Container("s0", "app", 0, model.Exited)
		if c.later != "" {
			w.Container("s0", "app", 1, c.later)
		}
		w.Memory.PendingRestarts = map[string]string{"app": c.stopped}
		if got := podOf(w).AwaitsRestart("app"); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestStartTime checks that it is the recorded time, or else the creation of the oldest sandbox.
func TestStartTime(t *testing.T) {
	w := policy(t, v1.RestartPolicyAlways)
	if got := podOf(w).StartTime(); !got.IsZero() {
		t.Errorf("a pod that was never there began at %s", got)
	}
	w.Sandbox("s0", 0, model.SandboxNotReady).Sandbox("s1", 1, model.SandboxReady)
	w.Sandboxes[0].CreatedAt = modeltest.Noon().Add(-2 * time.Hour)
	if got := podOf(w).StartTime(); !got.Equal(modeltest.Noon().Add(-2 * time.Hour)) {
		t.Errorf("without memory it began at %s", got)
	}
	w.Memory.StartTime = modeltest.Noon().Add(-time.Minute)
	if got := podOf(w).StartTime(); !got.Equal(w.Memory.StartTime) {
		t.Errorf("it began at %s", got)
	}
}

// TestDeadline checks that a pod is over once activeDeadlineSeconds have passed since it was applied.
func TestDeadline(t *testing.T) {
	for age, over := range map[time.Duration]bool{59 * time.Second: false, time.Minute: true, time.Hour: true} {
		w := web(t, "  activeDeadlineSeconds: 60\n  containers: [{name: app, image: i:1}]\n").Sandbox("s0", 0, model.SandboxReady)
		w.Container("s0", "app", 0, model.Running)
		w.Memory.StartTime = modeltest.Noon().Add(-age)
		p := podOf(w)
		if p.DeadlineExceeded() != over || p.Over() != over {
			t.Errorf("after %s: exceeded %t, over %t", age, p.DeadlineExceeded(), p.Over())
		}
		s := Of(p)
		if (s.Phase == v1.PodFailed) != over || (s.Reason == "DeadlineExceeded") != over {
			t.Errorf("after %s: phase %s, reason %q", age, s.Phase, s.Reason)
		}
	}
	w := web(t, "  activeDeadlineSeconds: 60\n  containers: [{name: app, image: i:1}]\n")
	if podOf(w).DeadlineExceeded() {
		t.Error("a pod that never began is over its time")
	}
}

func TestAgo(t *testing.T) {
	p := podOf(policy(t, v1.RestartPolicyAlways))
	for want, at := range map[string]time.Time{
		"just now": {}, "90s ago": modeltest.Noon().Add(-90 * time.Second), "3h ago": modeltest.Noon().Add(-3 * time.Hour),
	} {
		if got := p.Ago(at); got != want {
			t.Errorf("%s is %q, not %q", at, got, want)
		}
	}
	for name, at := range map[string]time.Time{"the epoch": time.Unix(0, 0), "the future": modeltest.Noon().Add(time.Second)} {
		if got := p.Ago(at); got != "just now" {
			t.Errorf("%s is %q", name, got)
		}
	}
}
