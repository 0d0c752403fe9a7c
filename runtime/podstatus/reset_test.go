package podstatus

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

const resetSpec = `  initContainers: [{name: seed, image: i:1}, {name: side, image: i:1, restartPolicy: Always}]
  containers:
  - name: app
    image: i:1
    restartPolicy: Never
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [4]}}]
  - {name: log, image: i:1}
`

// resetWorld returns a pod whose records were removed to restart all containers, with the given states since.
func resetWorld(t *testing.T, states string) *modeltest.World {
	t.Helper()
	w := web(t, resetSpec).Sandbox("s0", 0, model.SandboxReady)
	w.Memory.LastRun = &model.LastRun{Sandbox: "s0", Reset: []string{"app", "log", "seed", "side"}}
	w.LogAttempts = map[string]uint32{"app": 2, "log": 0, "seed": 0, "side": 0}
	return w.States(states)
}

// TestResetContainersAreShown checks that they are about to run again, with the count from their logs.
func TestResetContainersAreShown(t *testing.T) {
	got := shownOf(t, resetWorld(t, ""), "app")
	if stateText(got.State) != "waiting RestartingAllContainers" ||
		stateText(got.LastTerminationState) != "exited 137 RestartingAllContainers" {
		t.Errorf("%s, last %s", stateText(got.State), stateText(got.LastTerminationState))
	}
	if got.RestartCount != 3 {
		t.Errorf("%d restarts", got.RestartCount)
	}
}

// TestLastStateAfterAReset checks that a container that started since shows how the run before ended, until the runtime
// has a record of an earlier run.
func TestLastStateAfterAReset(t *testing.T) {
	w := resetWorld(t, "app=Running")
	w.Memory.LastRun.Reset, w.Memory.LastRun.AfterReset = nil, []string{"app"}
	if got := shownOf(t, w, "app"); stateText(got.LastTerminationState) != "exited 137 RestartingAllContainers" ||
		got.State.Running == nil {
		t.Errorf("%s, last %s", stateText(got.State), stateText(got.LastTerminationState))
	}
	w.Memory.LastRun.Sandbox = "s9"
	if got := shownOf(t, w, "app"); got.LastTerminationState.Terminated != nil {
		t.Errorf("in another sandbox: last %s", stateText(got.LastTerminationState))
	}
	w.Memory.LastRun.Sandbox = "s0"
	w.End("app", 3, 0)
	w.Container("s0", "app", 1, model.Running)
	if got := shownOf(t, w, "app"); got.LastTerminationState.Terminated == nil || got.LastTerminationState.Terminated.ExitCode != 3 {
		t.Errorf("one run later: last %s", stateText(got.LastTerminationState))
	}
}

// TestContainersThatWereReset checks that only a container that ran before, in the same sandbox and without a record
// since, was reset.
func TestContainersThatWereReset(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *modeltest.World)
		want   bool
	}{
		"reset":                      {func(*modeltest.World) {}, true},
		"nothing is remembered":      {func(w *modeltest.World) { w.Memory.LastRun = nil }, false},
		"not among the reset":        {func(w *modeltest.World) { w.Memory.LastRun.Reset = []string{"log"} }, false},
		"in another sandbox":         {func(w *modeltest.World) { w.Memory.LastRun.Sandbox = "s9" }, false},
		"the container has a record": {func(w *modeltest.World) { w.States("seed=Created") }, false},
		"the container never ran":    {func(w *modeltest.World) { delete(w.LogAttempts, "seed") }, false},
		"a regular one has come":     {func(w *modeltest.World) { w.States("app=Running") }, false},
	} {
		w := resetWorld(t, "")
		c.change(w)
		got := shownOf(t, w, "seed").LastTerminationState.Terminated
		if (got != nil && got.Reason == restartingAll) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestResetInProgress checks that a reset is in progress until the first container exists again.
func TestResetInProgress(t *testing.T) {
	for states, want := range map[string]string{
		"":                         "waiting RestartingAllContainers",
		"seed=Running":             "waiting PodInitializing",
		"seed=Exited side=Running": "waiting PodInitializing",
		// The cause of the next reset exists already.
		"app=Exited:4": "waiting RestartingAllContainers",
	} {
		if got := stateText(shownOf(t, resetWorld(t, states), "log").State); got != want {
			t.Errorf("%q: %s, not %s", states, got, want)
		}
	}
}

// TestResetPodRunsAgain checks that reset containers count as stopped and about to start. The pod is pending only while
// an init container with a record is not done.
func TestResetPodRunsAgain(t *testing.T) {
	for states, want := range map[string]v1.PodPhase{
		"":                                     v1.PodRunning,
		"seed=Running":                         v1.PodPending,
		"seed=Exited":                          v1.PodRunning,
		"seed=Exited side=Running":             v1.PodRunning,
		"seed=Exited side=Running app=Running": v1.PodRunning,
	} {
		w := resetWorld(t, states)
		if got := statusOf(w).Phase; got != want {
			t.Errorf("%q: %s, not %s", states, got, want)
		}
		if w.Memory.LastRun = nil; states == "seed=Exited" && statusOf(w).Phase != v1.PodPending {
			t.Errorf("%q, not reset: %s", states, statusOf(w).Phase)
		}
	}
}
