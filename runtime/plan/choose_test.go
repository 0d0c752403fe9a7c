package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// web returns a world with the sandbox s0 and a pod with the given specification and container states.
func web(t *testing.T, spec, states string) *modeltest.World {
	t.Helper()
	return modeltest.New(modeltest.Load(t, modeltest.Pod(spec))).Sandbox("s0", 0, model.SandboxReady).States(states)
}

// edited gives a world another manifest than the one it was made from.
func edited(t *testing.T, w *modeltest.World, text string) *modeltest.World {
	t.Helper()
	w.Desired = modeltest.Load(t, text)
	for _, ref := range podspec.Containers(w.Desired.Pod) {
		w.Images[ref.Image] = model.Image{ID: "sha256:" + ref.Image}
	}
	return w
}

func chosen(w *modeltest.World, opts Options) choice {
	in := inputOf(w)
	in.Options = opts
	return choose(in.State(), &opts)
}

// choiceText describes a choice, one line per entry.
func choiceText(c choice) []string {
	out := []string{}
	add := func(format string, args ...any) { out = append(out, strings.TrimSpace(fmt.Sprintf(format, args...))) }
	if c.killPod || c.createSandbox {
		add("kill pod %t, create sandbox %t, attempt %d: %s", c.killPod, c.createSandbox, c.attempt, c.cause.reason)
	}
	for _, r := range c.resets {
		add("reset %s, kill %t", r.container.ID, r.kill)
	}
	for _, r := range c.removed {
		add("remove %s: %s", r.container.ID, r.reason)
	}
	for _, k := range c.kills {
		add("kill %s: %s %s", k.container.ID, k.reason, k.message)
	}
	for _, list := range [][]start{c.inits, c.regulars, c.ephemerals} {
		for _, s := range list {
			add("start %s: %s%s", s.ref.Name, s.reason, map[bool]string{true: ", fresh"}[s.fresh])
		}
	}
	for _, u := range c.updates {
		add("update %s, grows %t", u.ref.Name, u.grows)
	}
	for _, k := range c.keeps {
		add("keep %s: %s", k.Container, k.Reason)
	}
	for _, h := range c.holds {
		add("hold %s: %s", h.Container, h.Reason)
	}
	for _, w := range c.waiting {
		add("wait for %s", w)
	}
	return out
}

// TestChooseSandbox checks which sandbox is judged, and the attempt of the next one.
func TestChooseSandbox(t *testing.T) {
	type verdict struct {
		kill, create bool
		id           string
		attempt      uint32
		reason       model.Reason
		changes      int
	}
	for name, c := range map[string]struct {
		change func(w *modeltest.World)
		want   verdict
	}{
		"none": {func(w *modeltest.World) { w.Sandboxes = nil }, verdict{true, true, "", 0, model.SandboxMissing, 0}},
		"no sandbox, attempt in use": {
			func(w *modeltest.World) { w.Sandboxes = nil; w.Reserved = map[string]uint32{"": 4} },
			verdict{true, true, "", 5, model.SandboxMissing, 0},
		},
		"the sandbox stays": {func(*modeltest.World) {}, verdict{false, false, "s0", 3, model.Completed, 0}},
		"not ready": {
			func(w *modeltest.World) { w.Sandboxes[0].State = model.SandboxNotReady },
			verdict{true, true, "s0", 4, model.SandboxNotReadyState, 0},
		},
		"not ready, and one is taken": {func(w *modeltest.World) {
			w.Sandboxes[0].State, w.Reserved = model.SandboxNotReady, map[string]uint32{"": 7, "app": 9}
		}, verdict{true, true, "s0", 8, model.SandboxNotReadyState, 0}},
		"a lower one is taken": {func(w *modeltest.World) {
			w.Sandboxes[0].State, w.Reserved = model.SandboxNotReady, map[string]uint32{"": 1}
		}, verdict{true, true, "s0", 4, model.SandboxNotReadyState, 0}},
		"another network": {
			func(w *modeltest.World) { w.Sandboxes[0].HostNetwork = true },
			verdict{true, true, "", 4, model.NetworkModeChanged, 0},
		},
		"no address": {func(w *modeltest.World) { w.Sandboxes[0].IPs = nil }, verdict{true, true, "s0", 4, model.NoIP, 0}},
		"edited": {func(w *modeltest.World) {
			w.Memory.Applied = w.Desired
			edited(t, w, strings.Replace(modeltest.WebPod, "spec:\n", "spec:\n  hostname: other\n", 1))
		}, verdict{true, true, "s0", 4, model.SandboxConfigChanged, 1}},
		"edited, and the applied version is unknown": {func(w *modeltest.World) {
			edited(t, w, strings.Replace(modeltest.WebPod, "spec:\n", "spec:\n  hostname: other\n", 1))
		}, verdict{true, true, "s0", 4, model.SandboxConfigChanged, 0}},
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).
			Sandbox("s0", 3, model.SandboxReady).States("seed=Exited app=Running log=Running")
		c.change(w)
		got := chosen(w, Options{})
		changes := len(got.cause.diff.Changes)
		g := verdict{got.killPod, got.createSandbox, got.sandboxID, got.attempt, got.cause.reason, changes}
		if g != c.want {
			t.Errorf("%s: got %+v, want %+v", name, g, c.want)
		}
	}
}

// TestChooseInANewSandbox checks that all init containers run again, and that containers that succeeded for good do
// not.
func TestChooseInANewSandbox(t *testing.T) {
	plain := "  restartPolicy: %s\n  containers: [{name: app, image: i:1}, {name: log, image: i:1}]\n"
	inits := "  initContainers: [{name: seed, image: i:1}, {name: side, image: i:1, restartPolicy: Always}]\n"
	for name, c := range map[string]struct {
		spec, states string
		change       func(w *modeltest.World)
		want         []string
	}{
		"a new pod": {fmt.Sprintf(plain, "Always"), "", func(w *modeltest.World) { w.Sandboxes = nil }, []string{
			"kill pod true, create sandbox true, attempt 0: SandboxMissing", "start app: NotCreated", "start log: NotCreated",
		}},
		"a new pod with init containers": {
			inits + fmt.Sprintf(plain, "Never"),
			"",
			func(w *modeltest.World) { w.Sandboxes = nil },
			[]string{"kill pod true, create sandbox true, attempt 0: SandboxMissing", "start seed: NotCreated"},
		},
		"the sandbox ended": {fmt.Sprintf(plain, "Always"), "app=Exited log=Exited:1", nil, []string{
			"kill pod true, create sandbox true, attempt 1: SandboxNotReady", "start app: SandboxReplaced", "start log: SandboxReplaced",
		}},
		"and one has done its work": {fmt.Sprintf(plain, "OnFailure"), "app=Exited log=Exited:1", nil, []string{
			"kill pod true, create sandbox true, attempt 1: SandboxNotReady", "start log: SandboxReplaced",
		}},
		"before init containers had run": {inits + fmt.Sprintf(plain, "OnFailure"), "seed=Running", nil, []string{
			"kill pod true, create sandbox true, attempt 1: SandboxNotReady", "start seed: SandboxReplaced",
		}},
		"in a pod that runs once": {fmt.Sprintf(plain, "Never"), "app=Running log=Running", nil, []string{
			"kill pod true, create sandbox false, attempt 1: SandboxNotReady", "hold : SandboxNotReady",
		}},
		"and nothing had run": {fmt.Sprintf(plain, "Never"), "", nil, []string{
			"kill pod true, create sandbox true, attempt 1: SandboxNotReady", "start app: NotCreated", "start log: NotCreated",
		}},
		"a container that left the manifest is removed": {fmt.Sprintf(plain, "Always"), "gone=Exited app=Created", nil, []string{
			"kill pod true, create sandbox true, attempt 1: SandboxNotReady", "remove app-0-of-s0: NeverStarted",
			"remove gone-0-of-s0: RemovedFromSpec",
			"start app: SandboxReplaced", "start log: NotCreated",
		}},
	} {
		w := web(t, c.spec, c.states)
		w.Sandboxes[0].State = model.SandboxNotReady
		if c.change != nil {
			c.change(w)
		}
		if diff := cmp.Diff(c.want, choiceText(chosen(w, Options{}))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestEditedSandboxStartsAtOnce checks that containers that an edit stops restart without delay. A pod with
// restartPolicy Never stays as it is.
func TestEditedSandboxStartsAtOnce(t *testing.T) {
	for policy, want := range map[string][]string{
		"Always": {
			"kill pod true, create sandbox true, attempt 1: SandboxConfigChanged",
			"start app: SandboxReplaced, fresh",
			"start new: NotCreated, fresh",
		},
		"Never": {"hold : SandboxConfigChanged"},
	} {
		spec := "  restartPolicy: " + policy + "\n  containers: [{name: app, image: i:1}]\n"
		w := web(t, spec, "app=Running")
		edited(t, w, modeltest.Pod("  hostname: other\n"+strings.Replace(spec, "}]", "}, {name: new, image: i:1}]", 1)))
		got := chosen(w, Options{})
		if diff := cmp.Diff(want, choiceText(got)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", policy, diff)
		}
		if policy == "Never" && (got.sandboxID != "s0" || !got.holds[0].Blocking) {
			t.Errorf("sandbox %q, want none; holds %+v", got.sandboxID, got.holds)
		}
	}
}

// TestFinishedPodIsStopped also checks that no container starts.
func TestFinishedPodIsStopped(t *testing.T) {
	for name, c := range map[string]struct {
		states  string
		ready   model.SandboxState
		want    []string
		message string
	}{
		"sandbox exists": {
			"app=Exited",
			model.SandboxReady,
			[]string{"kill pod true, create sandbox false, attempt 0: Completed", "keep app: Exited"},
			"the pod has finished: Succeeded",
		},
		"the pod failed": {
			"app=Exited:1",
			model.SandboxReady,
			[]string{"kill pod true, create sandbox false, attempt 0: Completed", "keep app: Exited"},
			"the pod has finished: Failed",
		},
		"sandbox removed": {"app=Exited", model.SandboxNotReady, []string{"keep app: Exited"}, "the pod has finished: Succeeded"},
		"something runs": {
			"app=Exited stray=Running",
			model.SandboxNotReady,
			[]string{"kill pod true, create sandbox false, attempt 1: Completed", "keep app: Exited"},
			"the pod has finished: Succeeded",
		},
	} {
		w := web(t, "  restartPolicy: Never\n  containers: [{name: app, image: i:1}]\n", c.states)
		w.Sandboxes[0].State = c.ready
		got := chosen(w, Options{})
		if diff := cmp.Diff(c.want, choiceText(got)); diff != "" || got.cause.message != c.message || !got.terminal {
			t.Errorf("%s: %q, (-want +got)\n%s", name, got.cause.message, diff)
		}
	}
}

// TestDeadlineStopsThePod also checks the reason, which is DeadlineExceeded only for a pod that has not finished.
func TestDeadlineStopsThePod(t *testing.T) {
	for states, want := range map[string]model.Reason{"app=Running": model.DeadlineExceeded, "app=Exited": model.Completed} {
		w := web(t, "  restartPolicy: Never\n  activeDeadlineSeconds: 60\n  containers: [{name: app, image: i:1}]\n", states)
		w.Memory.StartTime = modeltest.Noon().Add(-time.Hour)
		got := chosen(w, Options{})
		if got.cause.reason != want || !got.killPod || !got.terminal {
			t.Errorf("%q: %+v", states, got.cause)
		}
	}
}

// TestOrderOfRestartAll checks the order: regular containers, init containers, and last the container that
// caused the restart.
func TestOrderOfRestartAll(t *testing.T) {
	spec := `  initContainers: [{name: seed, image: i:1}]
  containers:
  - name: app
    image: i:1
    restartPolicy: Never
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [4]}}]
  - {name: log, image: i:1}
`
	w := web(t, spec, "seed=Exited app=Exited:4 log=Running")
	want := []string{
		"reset log-0-of-s0, kill true",
		"reset seed-0-of-s0, kill false",
		"reset app-0-of-s0, kill false",
		"wait for the next pass, which starts from the first container again",
	}
	if diff := cmp.Diff(want, choiceText(chosen(w, Options{}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	w.Sandboxes[0].State = model.SandboxNotReady
	if got := chosen(w, Options{}); !got.killPod || len(got.waiting) > 0 {
		t.Errorf("without a sandbox: %v", choiceText(got))
	}
}

// TestCompletedContainersStopThePod checks that a pod in which nothing runs, starts or is kept is stopped.
func TestCompletedContainersStopThePod(t *testing.T) {
	spec := "  restartPolicy: Never\n  containers: [{name: app, image: i:1, livenessProbe: {exec: {command: [a]}}}]\n"
	w := web(t, spec, "app=Running")
	w.Probed("app-0-of-s0", model.Liveness, model.ProbeFailure, 0)
	got := chosen(w, Options{})
	want := []string{
		"kill pod true, create sandbox false, attempt 0: Completed",
		"kill app-0-of-s0: LivenessFailed liveness probe failed: refused",
	}
	if diff := cmp.Diff(want, choiceText(got)); diff != "" || got.cause.message != "the pod has finished" {
		t.Errorf("%q, (-want +got)\n%s", got.cause.message, diff)
	}
}

// TestDebugContainersStartOnce checks that a debug container never starts twice, however it ended.
func TestDebugContainersStartOnce(t *testing.T) {
	spec := "  containers: [{name: app, image: i:1}]\n  ephemeralContainers: [{name: look, image: i:1}]\n"
	for states, want := range map[string][]string{
		"app=Running":               {"start look: NotCreated", "keep app: Running"},
		"app=Running look=Exited:1": {"keep app: Running"},
		"app=Running look=Running":  {"keep app: Running"},
	} {
		if diff := cmp.Diff(want, choiceText(chosen(web(t, spec, states), Options{}))); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", states, diff)
		}
	}
}

// TestContainersRemovedFromTheManifest checks that containers that left the manifest are removed. Debug containers of
// the active sandbox stay, and so do records without podctl's hash that never started.
func TestContainersRemovedFromTheManifest(t *testing.T) {
	w := web(t, "  containers: [{name: app, image: i:1}]\n", "app=Running")
	w.Sandbox("old", 0, model.SandboxNotReady)
	w.Sandboxes[0].Attempt = 1
	w.Container("s0", "left", 0, model.Running)
	w.Container("s0", "debug", 0, model.Running).Debug = true
	w.Container("old", "olddebug", 0, model.Exited).Debug = true
	w.Container("s0", "app", 1, model.Created)
	w.Container("s0", "app", 2, model.Created).SpecHash = ""
	var got []string
	for _, r := range leftovers(inputOf(w).State()) {
		got = append(got, r.container.ID+" "+string(r.reason))
	}
	want := []string{"app-1-of-s0 NeverStarted", "left-0-of-s0 RemovedFromSpec", "olddebug-0-of-old RemovedFromSpec"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestKeepsAreDescribed checks the reasons and messages of kept containers.
func TestKeepsAreDescribed(t *testing.T) {
	spec := "  restartPolicy: Never\n  initContainers: [{name: seed, image: i:1}]\n  containers: [{name: app, image: i:1}]\n"
	for _, c := range []struct {
		name   string
		record model.Container
		want   Keep
	}{
		{
			"app",
			model.Container{State: model.Running, StartedAt: modeltest.Noon().Add(-time.Hour)},
			Keep{State: "RUNNING", Reason: "Running", Message: "running, started 60m ago"},
		},
		{
			"app",
			model.Container{
				State:      model.Exited,
				ExitCode:   2,
				Reason:     "Error",
				FinishedAt: modeltest.Noon().Add(-time.Minute),
			},
			Keep{State: "EXITED", Reason: "Exited", Message: "exited 2 60s ago"},
		},
		{
			"app",
			model.Container{State: model.Exited, ExitCode: 137, Reason: "OOMKilled"},
			Keep{State: "EXITED", Reason: "Exited", Message: "exited 137 just now: OOMKilled"},
		},
		{
			"seed",
			model.Container{State: model.Exited, Reason: "Completed"},
			Keep{State: "EXITED", Reason: "InitDone", Message: "done, exited 0 just now"},
		},
		{
			"seed",
			model.Container{State: model.Exited, ExitCode: 1, Reason: "Error"},
			Keep{State: "EXITED", Reason: "InitFailed", Message: "failed, exited 1 just now"},
		},
		{
			"seed",
			model.Container{State: model.Running, StartedAt: modeltest.Noon()},
			Keep{State: "RUNNING", Reason: "InitRunning", Message: "running, started 0s ago"},
		},
	} {
		pod := inputOf(web(t, spec, "")).State()
		ref, _ := podspec.FindContainer(pod.Manifest, c.name)
		c.want.Container, c.want.ContainerType = c.name, ref.Type
		if diff := cmp.Diff(c.want, keepOf(pod, ref, &c.record)); diff != "" {
			t.Errorf("%s %s: (-want +got)\n%s", c.name, c.record.State, diff)
		}
	}
}

// TestChoosingChangesNothing checks that choosing does not modify its input.
func TestChoosingChangesNothing(t *testing.T) {
	w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	w.Desired.Pod.Spec.RestartPolicy = v1.RestartPolicyOnFailure
	w.End("app", 1, time.Second)
	in := inputOf(w)
	before := choiceText(chosen(w, Options{}))
	decide(in.State(), &in.Options)
	if diff := cmp.Diff(before, choiceText(chosen(w, Options{}))); diff != "" {
		t.Errorf("(-first +second)\n%s", diff)
	}
}

// TestCompletedPodGetsNoSandbox checks a pod whose containers all succeeded and whose sandbox is gone.
func TestCompletedPodGetsNoSandbox(t *testing.T) {
	w := web(t, "  restartPolicy: Always\n  containers: [{name: job, image: i:1, restartPolicy: OnFailure}]\n", "job=Exited")
	w.Sandboxes[0].State = model.SandboxNotReady
	w.Memory.LastRun = &model.LastRun{Stopped: []string{"s0"}}
	p := makePlan(w)
	if p.CreateSandbox || len(lines(p)) > 0 {
		t.Errorf("create %t: %v", p.CreateSandbox, lines(p))
	}
}

// TestSandboxesOwnRecordExplainsItsChange checks that the sandbox's own record is used before the manifest applied
// last.
func TestSandboxesOwnRecordExplainsItsChange(t *testing.T) {
	before := modeltest.Load(t, modeltest.WebPod)
	w := modeltest.Running(before)
	w.Memory.Applied = before
	tree, err := json.Marshal(spechash.SandboxProjection(before))
	if err != nil {
		t.Fatal(err)
	}
	edited(t, w, strings.Replace(modeltest.WebPod, "spec:", "spec:\n  hostname: h2", 1))
	for spec, want := range map[string]string{
		"":                                    "hostname: + h2",
		string(tree):                          "hostname: + h2",
		`{"hostname":"h1"}`:                   "hostname: h1 -> h2",
		strings.TrimSuffix(string(tree), "}"): "hostname: + h2",
	} {
		w.Sandboxes[0].Spec = spec
		changes := chosen(w, Options{}).cause.diff.Changes
		if len(changes) == 0 || changes[0].String() != want {
			t.Errorf("%s: %v", spec, changes)
		}
	}
}

// TestEditedSinceUnknownDefinition checks a changed container whose earlier definition is unknown.
func TestEditedSinceUnknownDefinition(t *testing.T) {
	w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, "Always", ""))).
		Sandbox("s0", 0, model.SandboxReady).States("x=Running app=Running")
	w.Memory.Applied = modeltest.Load(t, modeltest.Pod("  containers: [{name: app, image: i:1}]\n"))
	edited(t, w, ladderPod(podspec.Regular, "Always", ", command: [b]"))
	want := []string{"kill x-0-of-s0: SpecChanged its definition changed", "start x: SpecChanged, fresh", "keep app: Running"}
	if diff := cmp.Diff(want, choiceText(chosen(w, Options{}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestChangesOfAReplacementAreNamed checks that a sidecar's changes are listed only at its start.
func TestChangesOfAReplacementAreNamed(t *testing.T) {
	for _, kind := range []podspec.ContainerType{podspec.Regular, podspec.Sidecar} {
		sidecar := kind == podspec.Sidecar
		before := modeltest.Load(t, ladderPod(kind, "Always", ""))
		w := modeltest.New(before).Sandbox("s0", 0, model.SandboxReady).States("x=Running app=Running")
		w.Memory.Applied = before
		edited(t, w, ladderPod(kind, "Always", ", command: [b]"))
		for _, s := range makePlan(w).Steps {
			named := s.Kind == StartContainer || (s.Kind == StopContainer && !sidecar)
			if len(s.Changes) > 0 != named || (named && (s.Changes[0].Path != "command" || s.Unchanged == 0)) {
				t.Errorf("sidecar %t: step %s has changes %v, %d unchanged", sidecar, s.ID, s.Changes, s.Unchanged)
			}
			if (s.Kind == StopContainer || s.Kind == StartContainer) && s.Message != `command: + ["b"]` {
				t.Errorf("sidecar %t: step %s has message %s", sidecar, s.ID, s.Message)
			}
		}
	}
}
