package podstatus

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// stateText describes a state of a container in a few words.
func stateText(s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return strings.TrimSpace(fmt.Sprintf("exited %d %s", s.Terminated.ExitCode, s.Terminated.Reason))
	case s.Waiting != nil:
		return strings.TrimSpace("waiting " + s.Waiting.Reason)
	}
	return ""
}

// shownOf returns the status of a container of any type.
func shownOf(t *testing.T, w *modeltest.World, name string) v1.ContainerStatus {
	t.Helper()
	s := statusOf(w)
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return list[i]
			}
		}
	}
	t.Fatalf("there is no container %s", name)
	return v1.ContainerStatus{}
}

// TestStateWithoutARecord checks the waiting reasons.
func TestStateWithoutARecord(t *testing.T) {
	for name, c := range map[string]struct {
		text, container string
		states, want    string
	}{
		"alone in its pod": {
			modeltest.Pod("  containers: [{name: app, image: i:1}]\n"),
			"app",
			"",
			"waiting ContainerCreating",
		},
		"next to init containers":        {modeltest.WebPod, "app", "", "waiting PodInitializing"},
		"an init container":              {modeltest.WebPod, "seed", "", "waiting PodInitializing"},
		"an init container of old":       {modeltest.WebPod, "seed", "app=Running", "exited 0 Completed"},
		"and a regular one of unknown":   {modeltest.WebPod, "seed", "app=Unknown", "waiting PodInitializing"},
		"a regular one next to a record": {modeltest.WebPod, "log", "app=Running", "waiting PodInitializing"},
	} {
		w := modeltest.New(modeltest.Load(t, c.text)).Sandbox("s0", 0, model.SandboxReady).States(c.states)
		s := shownOf(t, w, c.container)
		if got := stateText(s.State); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
		if s.ContainerID != "" || s.RestartCount != 0 || s.Image != "i:1" {
			t.Errorf("%s: id %q, %d restarts, image %q", name, s.ContainerID, s.RestartCount, s.Image)
		}
	}
}

// TestStateOfARecord checks that the newest record is the state, and the one before the last state.
func TestStateOfARecord(t *testing.T) {
	w := policy(t, v1.RestartPolicyAlways).Sandbox("s0", 0, model.SandboxReady)
	first := w.Container("s0", "app", 4, model.Exited)
	first.ExitCode, first.Reason, first.Message = 3, "Error", "boom"
	second := w.Container("s0", "app", 5, model.Running)
	second.Image, second.ImageRef = "registry.test/i:1", "registry.test/i@sha256:ab"
	got := shownOf(t, w, "app")
	if stateText(got.State) != "running" || !got.State.Running.StartedAt.Time.Equal(second.StartedAt) {
		t.Errorf("state %+v", got.State)
	}
	want := &v1.ContainerStateTerminated{
		ExitCode: 3, Reason: "Error", Message: "boom", ContainerID: "containerd://app-4-of-s0",
		StartedAt: got.LastTerminationState.Terminated.StartedAt, FinishedAt: got.LastTerminationState.Terminated.FinishedAt,
	}
	if diff := cmp.Diff(want, got.LastTerminationState.Terminated); diff != "" {
		t.Errorf("last state (-want +got)\n%s", diff)
	}
	if got.RestartCount != 5 || got.ContainerID != "containerd://app-5-of-s0" ||
		got.Image != "registry.test/i:1" || got.ImageID != second.ImageRef {
		t.Errorf("%+v", got)
	}
	second.RestartCount = math.MaxUint32
	if got := shownOf(t, w, "app").RestartCount; got < 0 {
		t.Errorf("%d restarts", got)
	}
	for state, want := range map[model.ContainerState]string{model.Created: "waiting", model.Unknown: "waiting", model.Exited: "exited 0"} {
		second.State = state
		w.Find("app-5-of-s0").State = state
		if got := stateText(shownOf(t, w, "app").State); got != want {
			t.Errorf("%s: %s", state, got)
		}
	}
}

// TestStartErrorIsShown checks that it replaces the state of a container that should run and does not.
func TestStartErrorIsShown(t *testing.T) {
	always, never := v1.RestartPolicyAlways, v1.RestartPolicyNever
	for _, c := range []struct {
		policy      v1.RestartPolicy
		states      string
		state, last string
	}{
		{always, "", "waiting ErrImagePull", ""},
		{always, "app=Created", "waiting ErrImagePull", ""},
		{always, "app=Running", "running", ""},
		{always, "app=Exited:1", "waiting ErrImagePull", "exited 1"},
		{always, "app=Exited", "waiting ErrImagePull", "exited 0"},
		{never, "app=Exited:1", "exited 1", ""},
		{never, "", "waiting ErrImagePull", ""},
	} {
		w := policy(t, c.policy).Sandbox("s0", 0, model.SandboxReady).States(c.states)
		w.Memory.StartErrors = map[string]model.StartError{"app": {Reason: "ErrImagePull", Message: "no such image"}}
		got := shownOf(t, w, "app")
		if stateText(got.State) != c.state || stateText(got.LastTerminationState) != c.last {
			t.Errorf("%s, %q: %s, last %s", c.policy, c.states, stateText(got.State), stateText(got.LastTerminationState))
		}
		if got.State.Waiting != nil && got.State.Waiting.Message != "no such image" {
			t.Errorf("%s, %q: message %q", c.policy, c.states, got.State.Waiting.Message)
		}
	}
}

// TestDelayIsShown checks that a delay is shown as CrashLoopBackOff, before the last failure to start. An estimate is
// not shown.
func TestDelayIsShown(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *modeltest.World)
		want   string
	}{
		"in force":           {func(*modeltest.World) {}, "waiting CrashLoopBackOff"},
		"over":               {func(w *modeltest.World) { w.End("app", 7, time.Minute) }, "waiting ErrImagePull"},
		"an estimate":        {func(w *modeltest.World) { w.Memory.Backoffs = nil }, "waiting ErrImagePull"},
		"the container runs": {func(w *modeltest.World) { w.Containers[0].State = model.Running }, "running"},
		"under Never":        {func(w *modeltest.World) { w.Desired.Pod.Spec.RestartPolicy = v1.RestartPolicyNever }, "exited 7"},
		"no more runs":       {func(w *modeltest.World) { w.Memory.StartErrors, w.Memory.Backoffs = nil, nil }, "exited 7"},
	} {
		w := crashed(t, time.Second)
		w.Memory.Backoffs["app"] = model.Backoff{Duration: 20 * time.Second, LastUpdate: modeltest.Noon().Add(-time.Minute)}
		w.Memory.StartErrors = map[string]model.StartError{"app": {Reason: "ErrImagePull"}}
		c.change(w)
		got := shownOf(t, w, "app")
		if stateText(got.State) != c.want {
			t.Errorf("%s: %s", name, stateText(got.State))
		}
		if c.want == "waiting CrashLoopBackOff" {
			want := "back-off 20s restarting failed container=app pod=web_default(" + string(w.Desired.Pod.UID) + ")"
			if got.State.Waiting.Message != want {
				t.Errorf("%s: %s", name, got.State.Waiting.Message)
			}
		}
	}
}

// TestDebugContainersAreNotDelayed checks that a debug container, which runs once, has no delay.
func TestDebugContainersAreNotDelayed(t *testing.T) {
	w := web(
		t, "  containers: [{name: app, image: i:1}]\n  ephemeralContainers: [{name: look, image: i:1}]\n",
	).Sandbox("s0", 0, model.SandboxReady)
	w.Container("s0", "look", 0, model.Exited).ExitCode = 1
	w.Memory.Backoffs["look"] = model.Backoff{Duration: time.Minute, LastUpdate: modeltest.Noon()}
	got := shownOf(t, w, "look")
	if stateText(got.State) != "exited 1" || got.Started != nil || got.Ready {
		t.Errorf("%+v", got)
	}
}

// TestStartedAndReady checks that sidecars and regular containers follow their probes, and init containers their
// progress (kubelet: TestUpdatePodStatus, TestUpdatePodStatusWithInitContainers).
func TestStartedAndReady(t *testing.T) {
	const both = ", startupProbe: {exec: {command: [a]}}, readinessProbe: {exec: {command: [a]}}"
	spec := "  initContainers: [{name: seed, image: i:1}, {name: side, image: i:1, restartPolicy: Always" +
		both + "}]\n  containers: [{name: app, image: i:1" + both + "}, {name: log, image: i:1}]\n"
	for _, c := range []struct {
		container, states string
		passed            []model.ProbeType
		started, ready    bool
	}{
		{"seed", "", nil, false, false},
		{"seed", "seed=Running", nil, true, false},
		{"seed", "seed=Exited:1", nil, false, false},
		{"seed", "seed=Exited", nil, false, true},
		{"side", "side=Running", nil, false, false},
		{"side", "side=Running", []model.ProbeType{model.Startup}, true, false},
		{"side", "side=Running", []model.ProbeType{model.Startup, model.Readiness}, true, true},
		{"app", "app=Running", nil, false, false},
		{"app", "app=Running", []model.ProbeType{model.Readiness}, false, false},
		{"app", "app=Running", []model.ProbeType{model.Startup}, true, false},
		{"app", "app=Running", []model.ProbeType{model.Startup, model.Readiness}, true, true},
		{"app", "app=Exited", []model.ProbeType{model.Startup, model.Readiness}, false, false},
		{"app", "app=Created", nil, false, false},
		{"log", "log=Running", nil, true, true},
		{"log", "log=Exited", nil, false, false},
	} {
		w := web(t, spec).Sandbox("s0", 0, model.SandboxReady).States(c.states)
		for _, p := range c.passed {
			w.Probed(c.container+"-0-of-s0", p, model.ProbeSuccess, 0)
		}
		got := shownOf(t, w, c.container)
		if *got.Started != c.started || got.Ready != c.ready {
			t.Errorf("%s, %q, passed %v: started %t, ready %t", c.container, c.states, c.passed, *got.Started, got.Ready)
		}
	}
}

// TestStartOfAContainerThatNeverRan checks that it is the CRI's zero, as in a kubelet.
func TestStartOfAContainerThatNeverRan(t *testing.T) {
	w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	w.End("app", 128, time.Minute).StartedAt = time.Time{}
	got := shownOf(t, w, "app")
	ended := got.State.Terminated
	if ended == nil {
		ended = got.LastTerminationState.Terminated
	}
	if ended == nil || ended.StartedAt.Unix() != 0 {
		t.Errorf("%+v", ended)
	}
}

// TestPullsThatPause checks that a delayed pull is shown until its next try.
func TestPullsThatPause(t *testing.T) {
	for ahead, want := range map[time.Duration]string{
		time.Second: `ImagePullBackOff Back-off pulling image "i:1": ErrImagePull: no route`, 0: "ErrImagePull no route",
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxReady)
		w.Memory.StartErrors = map[string]model.StartError{
			"app": {Reason: model.ErrImagePull, Message: "no route", Until: modeltest.Noon().Add(ahead)},
		}
		state := shownOf(t, w, "app").State.Waiting
		image := w.Desired.Pod.Spec.Containers[0].Image
		if got := state.Reason + " " + state.Message; got != strings.ReplaceAll(want, "i:1", image) {
			t.Errorf("%s ahead: %s, not %s", ahead, got, want)
		}
	}
}

// TestPullOfAnImageVolumeThatPauses checks that the image of a volume is named, not that of the container.
func TestPullOfAnImageVolumeThatPauses(t *testing.T) {
	w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxReady)
	w.Memory.StartErrors = map[string]model.StartError{"app": {
		Reason: model.ErrImagePull, Message: "no route", Until: modeltest.Noon().Add(time.Second), Image: "data:1",
	}}
	const want = `Back-off pulling image "data:1": ErrImagePull: no route`
	if state := shownOf(t, w, "app").State.Waiting; state.Message != want {
		t.Errorf("%s, not %s", state.Message, want)
	}
}

// TestFailedPostStartHook checks that the failure is shown until the container starts again, with the ended run as the
// last state. With restartPolicy Never that run was the end.
func TestFailedPostStartHook(t *testing.T) {
	for policy, want := range map[v1.RestartPolicy]string{
		v1.RestartPolicyAlways: "waiting PostStartHookError, last exited 137 Error", v1.RestartPolicyNever: "exited 137 Error, last ",
	} {
		w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
		w.Desired.Pod.Spec.RestartPolicy = policy
		w.End("app", 137, time.Minute).Reason = "Error"
		w.Memory.StartErrors = map[string]model.StartError{"app": {Reason: model.PostStartHookError, Message: "it failed"}}
		w.Memory.Backoffs = map[string]model.Backoff{}
		got := shownOf(t, w, "app")
		if text := stateText(got.State) + ", last " + stateText(got.LastTerminationState); text != want {
			t.Errorf("%s: %s, not %s", policy, text, want)
		}
		if wait := got.State.Waiting; wait != nil && wait.Message != "it failed" {
			t.Errorf("%s: %s", policy, wait.Message)
		}
	}
}

// TestStatusWhileAHookRuns checks that the status is the one from before the start while the postStart hook runs.
func TestStatusWhileAHookRuns(t *testing.T) {
	policy := func(name string) string {
		return modeltest.Pod("  restartPolicy: " + name + "\n  containers: [{name: app, image: i:1}]\n")
	}
	for name, c := range map[string]struct {
		text, before, state, last string
		phase                     v1.PodPhase
		restarts                  int32
	}{
		"its first start":         {policy("Always"), "", "waiting ContainerCreating", "", v1.PodPending, 0},
		"next to init containers": {modeltest.WebPod, "seed=Exited", "waiting PodInitializing", "", v1.PodPending, 0},
		"a restart":               {policy("Always"), "app=Exited:3", "exited 3", "", v1.PodRunning, 0},
		"a restart after success": {policy("OnFailure"), "app=Exited:0", "exited 0", "", v1.PodRunning, 0},
		"a requested restart":     {policy("Never"), "app=Exited:3", "exited 3", "", v1.PodRunning, 0},
	} {
		w := modeltest.New(modeltest.Load(t, c.text)).Sandbox("s0", 0, model.SandboxReady).States(c.before)
		w.Container("s0", "app", 1, model.Running).Starting = true
		s := shownOf(t, w, "app")
		if got := stateText(s.State); got != c.state ||
			stateText(s.LastTerminationState) != c.last || s.RestartCount != c.restarts || s.Ready || *s.Started {
			t.Errorf("%s: %q, last %q, %+v", name, got, stateText(s.LastTerminationState), s)
		}
		if phase := statusOf(w).Phase; phase != c.phase {
			t.Errorf("%s: phase %s, want %s", name, phase, c.phase)
		}
		w.Containers[len(w.Containers)-1].Starting = false
		if s = shownOf(t, w, "app"); s.State.Running == nil || !s.Ready || !*s.Started || s.RestartCount != 1 {
			t.Errorf("%s, after the hook: %+v", name, s)
		}
	}
}

// TestSidecarWhileItsHookRuns checks that the sidecar has not started, and delays the containers after it.
func TestSidecarWhileItsHookRuns(t *testing.T) {
	text := modeltest.Pod("  initContainers: [{name: proxy, image: i:1, restartPolicy: Always}]\n  containers: [{name: app, image: i:1}]\n")
	w := modeltest.New(modeltest.Load(t, text)).Sandbox("s0", 0, model.SandboxReady)
	w.Container("s0", "proxy", 0, model.Running).Starting = true
	if s := shownOf(t, w, "proxy"); s.State.Waiting == nil || *s.Started || s.Ready {
		t.Errorf("the sidecar: %+v", s)
	}
}
