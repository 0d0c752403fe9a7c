package podstatus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// conditionsOf lists the conditions of a world, one per line.
func conditionsOf(w *modeltest.World) []string {
	var lines []string
	for _, c := range statusOf(w).Conditions {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message)))
	}
	return lines
}

// TestConditions checks the conditions of a starting, running and finished pod.
func TestConditions(t *testing.T) {
	probed := strings.Replace(modeltest.WebPod, "{name: app, image: i:1}",
		"{name: app, image: i:1, readinessProbe: {exec: {command: [a]}}}", 1)
	for name, c := range map[string]struct {
		world func() *modeltest.World
		want  []string
	}{
		"nothing is there": {func() *modeltest.World { return modeltest.New(modeltest.Load(t, modeltest.WebPod)) }, []string{
			"PodReadyToStartContainers False",
			"Initialized False ContainersNotInitialized containers with incomplete status: [seed]",
			"Ready False ContainersNotReady containers with unready status: [app log]",
			"ContainersReady False ContainersNotReady containers with unready status: [app log]",
			"PodScheduled True",
		}},
		"the pod initialises": {func() *modeltest.World {
			return modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxReady).States("seed=Running")
		}, []string{
			"PodReadyToStartContainers True",
			"Initialized False ContainersNotInitialized containers with incomplete status: [seed]",
			"Ready False ContainersNotReady containers with unready status: [app log]",
			"ContainersReady False ContainersNotReady containers with unready status: [app log]",
			"PodScheduled True",
		}},
		"the pod is initialised": {func() *modeltest.World {
			return modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxReady).States("seed=Exited")
		}, []string{
			"PodReadyToStartContainers True",
			"Initialized True",
			"Ready False ContainersNotReady containers with unready status: [app log]",
			"ContainersReady False ContainersNotReady containers with unready status: [app log]",
			"PodScheduled True",
		}},
		"the pod runs": {func() *modeltest.World { return modeltest.Running(modeltest.Load(t, modeltest.WebPod)) }, []string{
			"PodReadyToStartContainers True", "Initialized True", "Ready True", "ContainersReady True", "PodScheduled True",
		}},
		"the record of its init container is gone": {func() *modeltest.World {
			return modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxReady).States("app=Running log=Running")
		}, []string{
			"PodReadyToStartContainers True", "Initialized True", "Ready True", "ContainersReady True", "PodScheduled True",
		}},
		"a probe has not passed": {func() *modeltest.World {
			return modeltest.Running(modeltest.Load(t, probed))
		}, []string{
			"PodReadyToStartContainers True", "Initialized True",
			"Ready False ContainersNotReady containers with unready status: [app]",
			"ContainersReady False ContainersNotReady containers with unready status: [app]", "PodScheduled True",
		}},
		"a probe has passed": {func() *modeltest.World {
			w := modeltest.Running(modeltest.Load(t, probed))
			w.Probed("app-0-of-s0", model.Readiness, model.ProbeSuccess, 0)
			return w
		}, []string{
			"PodReadyToStartContainers True", "Initialized True", "Ready True", "ContainersReady True", "PodScheduled True",
		}},
		"the pod has succeeded": {func() *modeltest.World { return ended(t, 0) }, []string{
			"PodReadyToStartContainers True", "Initialized True PodCompleted", "Ready False PodCompleted",
			"ContainersReady False PodCompleted", "PodScheduled True",
		}},
		"the pod has failed": {func() *modeltest.World { return ended(t, 1) }, []string{
			"PodReadyToStartContainers True", "Initialized True", "Ready False PodFailed",
			"ContainersReady False PodFailed", "PodScheduled True",
		}},
	} {
		if diff := cmp.Diff(c.want, conditionsOf(c.world())); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// ended returns a pod with restartPolicy Never whose container exited with a code.
func ended(t *testing.T, code int32) *modeltest.World {
	t.Helper()
	w := policy(t, v1.RestartPolicyNever).Sandbox("s0", 0, model.SandboxReady)
	w.Container("s0", "app", 0, model.Exited).ExitCode = code
	return w
}

// TestSidecarsAreWaitedFor checks that a pod is initialized once its sidecars have started, and ready once they are.
func TestSidecarsAreWaitedFor(t *testing.T) {
	spec := "  initContainers: [{name: side, image: i:1, restartPolicy: Always, startupProbe: {exec: {command: " +
		"[a]}}, readinessProbe: {exec: {command: [a]}}}]\n  containers: [{name: app, image: i:1}]\n"
	w := web(t, spec).Sandbox("s0", 0, model.SandboxReady).States("side=Running")
	for _, step := range []struct {
		what string
		do   func()
		want []string
	}{
		{"the sidecar runs", func() {}, []string{
			"Initialized False ContainersNotInitialized containers with incomplete status: [side]",
			"ContainersReady False ContainersNotReady containers with unready status: [side app]",
		}},
		{"the sidecar has started", func() { w.Probed("side-0-of-s0", model.Startup, model.ProbeSuccess, 0) }, []string{
			"Initialized True", "ContainersReady False ContainersNotReady containers with unready status: [side app]",
		}},
		{"the sidecar is ready", func() { w.Probed("side-0-of-s0", model.Readiness, model.ProbeSuccess, 0) }, []string{
			"Initialized True", "ContainersReady False ContainersNotReady containers with unready status: [app]",
		}},
		{"all run", func() { w.States("app=Running") }, []string{"Initialized True", "ContainersReady True"}},
	} {
		step.do()
		got := conditionsOf(w)
		if diff := cmp.Diff(step.want, []string{got[1], got[3]}); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", step.what, diff)
		}
	}
}

// TestReadinessGates checks that the pod is never ready, because no program sets the conditions of its gates. Until its
// containers are ready, their reason is shown.
func TestReadinessGates(t *testing.T) {
	w := web(t, "  readinessGates: [{conditionType: example.com/a}, "+
		"{conditionType: example.com/b}]\n  containers: [{name: app, image: i:1}]\n").
		Sandbox("s0", 0, model.SandboxReady)
	if got, want := conditionsOf(w)[2], "Ready False ContainersNotReady containers with unready status: [app]"; got != want {
		t.Errorf("before it runs: %s", got)
	}
	w.States("app=Running")
	want := `Ready False ReadinessGatesNotReady corresponding condition of pod readiness gate "example.com/a" does not exist., ` +
		`corresponding condition of pod readiness gate "example.com/b" does not exist.`
	if got := conditionsOf(w); got[2] != want || got[3] != "ContainersReady True" {
		t.Errorf("%s\n%s", got[2], got[3])
	}
}

// TestReadinessGatesOfClusters checks that a pod of the API server is neither ready nor unready while the conditions of
// its gates are unknown. A condition that does not depend on them is shown.
func TestReadinessGatesOfClusters(t *testing.T) {
	gate := func(status v1.ConditionStatus) []v1.PodCondition {
		return []v1.PodCondition{{Type: "example.com/a", Status: status}}
	}
	for name, c := range map[string]struct {
		states string
		gates  []v1.PodCondition
		want   string
	}{
		"unknown":         {"app=Running", nil, "Unknown ReadinessGatesUnknown"},
		"no container":    {"", nil, "False ContainersNotReady"},
		"not there":       {"app=Running", []v1.PodCondition{}, "False ReadinessGatesNotReady"},
		"open":            {"app=Running", gate(v1.ConditionTrue), "True "},
		"closed":          {"app=Running", gate(v1.ConditionFalse), "False ReadinessGatesNotReady"},
		"open, unstarted": {"", gate(v1.ConditionTrue), "False ContainersNotReady"},
	} {
		d := modeltest.Load(t, modeltest.Pod("  readinessGates: [{conditionType: example.com/a}]\n  containers: [{name: app, image: i:1}]\n"))
		d.Owner = podspec.OwnerAPI
		w := modeltest.New(d).Sandbox("s0", 0, model.SandboxReady)
		if c.states != "" {
			w.States(c.states)
		}
		for _, status := range []v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown} {
			w.Memory.Conditions = map[v1.PodConditionType]model.Transition{v1.PodReady: {Status: status, At: modeltest.Noon()}}
			p := podOf(w)
			p.cluster = &Cluster{Conditions: c.gates}
			ready := Of(p).Conditions[2]
			if got := string(ready.Status) + " " + ready.Reason; ready.Type != v1.PodReady || got != c.want {
				t.Errorf("%s: %s %s, want %s", name, ready.Type, got, c.want)
			}
			if !ready.LastTransitionTime.IsZero() {
				t.Errorf("%s: the time of an earlier pass is shown: %s", name, ready.LastTransitionTime)
			}
		}
	}
}

// TestRestartAllCondition checks that the condition exists if a rule may restart all containers, and is true if that is
// about to happen.
func TestRestartAllCondition(t *testing.T) {
	spec := "  restartPolicy: %s\n  containers: [{name: app, image: i:1, restartPolicy: Never, " +
		"restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [4]}}]}]\n"
	for _, c := range []struct {
		policy v1.RestartPolicy
		states string
		want   string
	}{
		{v1.RestartPolicyAlways, "app=Running", "AllContainersRestarting False"},
		{
			v1.RestartPolicyAlways,
			"app=Exited:4",
			"AllContainersRestarting True RestartAllContainersStarted container exited with restart policy rule",
		},
		{v1.RestartPolicyNever, "app=Exited:1", "AllContainersRestarting False PodFailed"},
		{v1.RestartPolicyNever, "app=Exited:0", "AllContainersRestarting False PodCompleted"},
	} {
		w := web(t, fmt.Sprintf(spec, c.policy)).Sandbox("s0", 0, model.SandboxReady).States(c.states)
		got := conditionsOf(w)
		if last := got[len(got)-1]; last != c.want {
			t.Errorf("%s, %q: %s, not %s", c.policy, c.states, last, c.want)
		}
	}
	for _, line := range conditionsOf(ended(t, 1)) {
		if strings.HasPrefix(line, "AllContainersRestarting") {
			t.Errorf("without a rule: %s", line)
		}
	}
}
