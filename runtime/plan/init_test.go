package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestInitWalk checks that the last init container with a record decides.
func TestInitWalk(t *testing.T) {
	spec := "  restartPolicy: %s\n  initContainers: [{name: a, image: i:1}, {name: b, image: i:1}]\n" +
		"  containers: [{name: app, image: i:1}]\n"
	failed := []string{"kill pod true, create sandbox false, attempt 0: Completed"}
	for _, c := range []struct {
		policy, states string
		want           []string
	}{
		{"Always", "", []string{"start a: NotCreated"}},
		{"Always", "a=Created", []string{"remove a-0-of-s0: NeverStarted", "start a: NeverStarted"}},
		{"Always", "a=Running", []string{"keep a: InitRunning", "wait for init container a to finish"}},
		{"Always", "a=Exited:1", []string{"start a: InitFailed"}},
		{"OnFailure", "a=Exited:1", []string{"start a: InitFailed"}},
		{"Always", "a=Exited", []string{"start b: NotCreated", "keep a: InitDone"}},
		{"Always", "a=Unknown", []string{"kill a-0-of-s0: UnknownState the runtime does not know its state", "start a: UnknownState"}},
		{"Never", "a=Unknown", failed},
		{"Always", "a=Exited b=Running", []string{"keep b: InitRunning", "keep a: InitDone", "wait for init container b to finish"}},
		{"Always", "a=Exited b=Exited:2", []string{"start b: InitFailed", "keep a: InitDone"}},
		{"Always", "a=Exited b=Exited", []string{"start app: NotCreated", "keep b: InitDone", "keep a: InitDone"}},
		// Containers before the last one no longer count.
		{"Always", "a=Exited:1 b=Exited", []string{"start app: NotCreated", "keep b: InitDone", "keep a: InitFailed"}},
		{"Always", "b=Exited", []string{"start app: NotCreated", "keep b: InitDone"}},
		// A created regular container shows that initialization is over.
		{"Always", "app=Running", []string{"keep app: Running"}},
		{"Always", "b=Exited:1 app=Running", []string{"keep b: InitFailed", "keep app: Running"}},
		{"Always", "b=Running app=Running", []string{"keep b: InitRunning", "keep app: Running"}},
	} {
		got := choiceText(chosen(web(t, fmt.Sprintf(spec, c.policy), c.states), Options{}))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, %q: (-want +got)\n%s", c.policy, c.states, diff)
		}
	}
}

// TestInitContainerKilledForItsMemory checks that it has failed whatever its exit code is.
func TestInitContainerKilledForItsMemory(t *testing.T) {
	for policy, want := range map[string][]string{
		"Always":    {"start seed: InitFailed"},
		"OnFailure": {"kill pod true, create sandbox false, attempt 0: Completed"},
	} {
		w := web(t,
			"  restartPolicy: "+policy+
				"\n  initContainers: [{name: seed, image: i:1}]\n  containers: [{name: app, image: i:1}]\n",
			"seed=Exited")
		w.Containers[0].Reason = "OOMKilled"
		if diff := cmp.Diff(want, choiceText(chosen(w, Options{}))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", policy, diff)
		}
	}
}

// TestStoppedInitContainerRunsAgain checks that an init container that podctl stopped runs again, whatever its exit
// code is.
func TestStoppedInitContainerRunsAgain(t *testing.T) {
	for _, states := range []string{"seed=Exited", "seed=Exited:1"} {
		w := web(t,
			"  restartPolicy: Never\n  initContainers: [{name: seed, image: i:1}]\n"+
				"  containers: [{name: app, image: i:1}]\n", states)
		w.Memory.PendingRestarts = map[string]string{"seed": "seed-0-of-s0"}
		if diff := cmp.Diff([]string{"start seed: Exited, fresh"}, choiceText(chosen(w, Options{}))); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", states, diff)
		}
	}
}

// TestResizedInitContainer checks that it changes in place while it runs, or restarts.
func TestResizedInitContainer(t *testing.T) {
	spec := "  initContainers: [{name: seed, image: i:1, resources: {limits: {cpu: %q}}}]\n  containers: [{name: app, image: i:1}]\n"
	for cpu, want := range map[string][]string{
		"1": {"keep seed: InitRunning", "wait for init container seed to finish"},
		"2": {"update seed, grows true", "keep seed: InitRunning", "wait for init container seed to finish"},
	} {
		w := web(t, fmt.Sprintf(spec, "1"), "seed=Running")
		w.Memory.Actuated = actuatedOf(w)
		edited(t, w, modeltest.Pod(fmt.Sprintf(spec, cpu)))
		if diff := cmp.Diff(want, choiceText(chosen(w, Options{}))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", cpu, diff)
		}
	}
	limited := "  initContainers: [{name: seed, image: i:1, resources: {requests: {cpu: 1m}%s}}]\n  containers: [{name: app, image: i:1}]\n"
	w := web(t, fmt.Sprintf(limited, ", limits: {cpu: 1}"), "seed=Running")
	w.Memory.Actuated = actuatedOf(w)
	edited(t, w, modeltest.Pod(fmt.Sprintf(limited, "")))
	want := []string{
		"kill seed-0-of-s0: Resized resources.limits.cpu: - 1; a limit cannot be removed in place",
		"start seed: Resized, fresh",
	}
	if diff := cmp.Diff(want, choiceText(chosen(w, Options{}))); diff != "" {
		t.Errorf("without a limit: (-want +got)\n%s", diff)
	}
}

const sidecarSpec = "  initContainers: [{name: side, image: i:1, restartPolicy: Always%s}, {name: seed, " +
	"image: i:1}]\n  containers: [{name: app, image: i:1}]\n"

// TestSidecarLetsTheNextOneStart checks that the next container starts once the sidecar runs, and that a sidecar that
// ended restarts.
func TestSidecarLetsTheNextOneStart(t *testing.T) {
	for _, c := range []struct {
		states string
		want   []string
	}{
		{"", []string{"start side: NotCreated"}},
		{"side=Created", []string{"remove side-0-of-s0: NeverStarted", "start side: NeverStarted"}},
		{"side=Running", []string{"start seed: NotCreated", "keep side: Running"}},
		{"side=Exited", []string{"start side: Exited"}},
		{"side=Unknown", []string{"kill side-0-of-s0: UnknownState the runtime does not know its state", "start side: UnknownState"}},
		{"side=Running seed=Running", []string{"keep seed: InitRunning", "keep side: Running", "wait for init container seed to finish"}},
		{"side=Exited seed=Running", []string{"start side: Exited", "keep seed: InitRunning", "wait for init container seed to finish"}},
		{"seed=Running", []string{"start side: NotCreated", "keep seed: InitRunning", "wait for init container seed to finish"}},
		{"side=Exited seed=Exited", []string{"start side: Exited", "start app: NotCreated", "keep seed: InitDone"}},
		{"side=Exited app=Running", []string{"start side: Exited", "keep app: Running"}},
		{"app=Running", []string{"start side: NotCreated", "keep app: Running"}},
	} {
		if diff := cmp.Diff(c.want, choiceText(chosen(web(t, fmt.Sprintf(sidecarSpec, ""), c.states), Options{}))); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", c.states, diff)
		}
	}
}

// TestSidecarGatesByItsStartupProbe checks that nothing after the sidecar starts before its startup probe has passed,
// and that its other probes do not count until then.
func TestSidecarGatesByItsStartupProbe(t *testing.T) {
	probes := ", startupProbe: {exec: {command: [a]}, periodSeconds: 10, failureThreshold: 3}, livenessProbe: {exec: {command: [a]}}"
	for name, c := range map[string]struct {
		set  func(w *modeltest.World)
		want []string
	}{
		"not asked": {func(*modeltest.World) {}, []string{"keep side: Running", "wait for sidecar side to pass its startup probe"}},
		"undecided, and its liveness failed": {func(w *modeltest.World) {
			w.Probed("side-0-of-s0", model.Startup, model.ProbeUnknown, 0)
			w.Probed("side-0-of-s0", model.Liveness, model.ProbeFailure, 0)
		}, []string{"keep side: Running", "wait for sidecar side to pass its startup probe"}},
		"passed": {func(w *modeltest.World) {
			w.Probed("side-0-of-s0", model.Startup, model.ProbeSuccess, 0)
		}, []string{"start seed: NotCreated", "keep side: Running"}},
		"failed": {func(w *modeltest.World) {
			w.Probed("side-0-of-s0", model.Startup, model.ProbeFailure, 0)
		}, []string{"kill side-0-of-s0: StartupFailed startup probe failed: refused", "start side: StartupFailed"}},
		"failed long ago": {func(w *modeltest.World) {
			w.Probed("side-0-of-s0", model.Startup, model.ProbeFailure, 31e9)
		}, []string{"keep side: Running", "hold side: ProbeStale"}},
	} {
		w := web(t, fmt.Sprintf(sidecarSpec, probes), "side=Running")
		c.set(w)
		if diff := cmp.Diff(c.want, choiceText(chosen(w, Options{}))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestLastSidecarLetsRegularContainersStart(t *testing.T) {
	spec := "  initContainers: [{name: side, image: i:1, restartPolicy: Always, " +
		"startupProbe: {exec: {command: [a]}}}]\n  containers: [{name: app, image: i:1}]\n"
	w := web(t, spec, "side=Running")
	want := []string{"keep side: Running", "wait for sidecar side to pass its startup probe"}
	if diff := cmp.Diff(want, choiceText(chosen(w, Options{}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	w.Probed("side-0-of-s0", model.Startup, model.ProbeSuccess, 0)
	if diff := cmp.Diff([]string{"start app: NotCreated", "keep side: Running"}, choiceText(chosen(w, Options{}))); diff != "" {
		t.Errorf("passed: (-want +got)\n%s", diff)
	}
}
