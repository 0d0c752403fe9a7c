package podstatus

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestPhase compares with the kubelet's getPhase, by the states of init and regular containers.
func TestPhase(t *testing.T) {
	for _, c := range []struct {
		policy v1.RestartPolicy
		states string
		want   v1.PodPhase
	}{
		{v1.RestartPolicyAlways, "", v1.PodPending},
		{v1.RestartPolicyAlways, "seed=Running", v1.PodPending},
		{v1.RestartPolicyAlways, "seed=Created", v1.PodPending},
		{v1.RestartPolicyAlways, "seed=Exited:1", v1.PodPending},
		{v1.RestartPolicyOnFailure, "seed=Exited:1", v1.PodPending},
		{v1.RestartPolicyNever, "seed=Exited:1", v1.PodFailed},
		{v1.RestartPolicyNever, "seed=Exited:1 app=Running log=Running", v1.PodFailed},
		{v1.RestartPolicyAlways, "seed=Exited", v1.PodPending},
		{v1.RestartPolicyAlways, "seed=Exited app=Running", v1.PodPending},
		{v1.RestartPolicyAlways, "seed=Exited app=Running log=Created", v1.PodPending},
		{v1.RestartPolicyAlways, "seed=Exited app=Running log=Unknown", v1.PodPending},
		{v1.RestartPolicyAlways, "seed=Exited app=Running log=Running", v1.PodRunning},
		{v1.RestartPolicyAlways, "app=Running log=Running", v1.PodRunning},
		{v1.RestartPolicyAlways, "seed=Exited app=Running log=Exited:1", v1.PodRunning},
		{v1.RestartPolicyNever, "seed=Exited app=Running log=Exited:1", v1.PodRunning},
		{v1.RestartPolicyAlways, "seed=Exited app=Exited log=Exited", v1.PodRunning},
		{v1.RestartPolicyOnFailure, "seed=Exited app=Exited log=Exited", v1.PodSucceeded},
		{v1.RestartPolicyOnFailure, "seed=Exited app=Exited log=Exited:1", v1.PodRunning},
		{v1.RestartPolicyNever, "seed=Exited app=Exited log=Exited", v1.PodSucceeded},
		{v1.RestartPolicyNever, "seed=Exited app=Exited log=Exited:1", v1.PodFailed},
		{v1.RestartPolicyNever, "seed=Exited app=Exited", v1.PodPending},
	} {
		d := modeltest.Load(t, modeltest.WebPod)
		d.Pod.Spec.RestartPolicy = c.policy
		w := modeltest.New(d).Sandbox("s0", 0, model.SandboxReady).States(c.states)
		if got := podOf(w).Phase; got != c.want {
			t.Errorf("%s, %q: %s, not %s", c.policy, c.states, got, c.want)
		}
	}
}

// TestPhaseWithSidecars checks that a sidecar that has not started keeps the pod pending until a regular container has
// run, and that an ended sidecar does not.
func TestPhaseWithSidecars(t *testing.T) {
	spec := "  restartPolicy: Never\n  initContainers: [{name: side, image: i:1, restartPolicy: Always, " +
		"startupProbe: {exec: {command: [a]}}}]\n  containers: [{name: app, image: i:1}]\n"
	for _, c := range []struct {
		states  string
		started bool
		want    v1.PodPhase
	}{
		{"", false, v1.PodPending},
		{"side=Created", false, v1.PodPending},
		{"side=Running", false, v1.PodPending},
		{"side=Running", true, v1.PodPending},
		{"side=Running app=Running", true, v1.PodRunning},
		{"side=Running app=Running", false, v1.PodRunning},
		{"side=Exited:1 app=Running", false, v1.PodRunning},
		{"side=Running app=Exited", true, v1.PodRunning},
		{"side=Exited app=Exited", false, v1.PodSucceeded},
		{"side=Exited:1 app=Exited:1", false, v1.PodFailed},
	} {
		w := web(t, spec).Sandbox("s0", 0, model.SandboxReady).States(c.states)
		if c.started {
			w.Probed("side-0-of-s0", model.Startup, model.ProbeSuccess, 0)
		}
		if got := podOf(w).Phase; got != c.want {
			t.Errorf("%q, started %t: %s, not %s", c.states, c.started, got, c.want)
		}
	}
}

// TestPhaseOfStoppedContainers checks that a container that podctl stopped to run again does not finish its pod.
func TestPhaseOfStoppedContainers(t *testing.T) {
	for states, want := range map[string]v1.PodPhase{
		"seed=Exited app=Exited log=Exited": v1.PodRunning, "seed=Exited app=Exited:1 log=Exited": v1.PodRunning,
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxReady)
		w.Desired.Pod.Spec.RestartPolicy = v1.RestartPolicyNever
		w.States(states).Memory.PendingRestarts = map[string]string{"app": "app-0-of-s0"}
		if got := podOf(w).Phase; got != want {
			t.Errorf("%q: %s", states, got)
		}
		w.Memory.PendingRestarts = map[string]string{"seed": "seed-0-of-s0"}
		if got := podOf(w).Phase; got != v1.PodPending {
			t.Errorf("%q with a stopped init container: %s", states, got)
		}
	}
}

// TestCompletionIsRecorded checks that a pod without records stays finished, unless it now has restartPolicy Always.
func TestCompletionIsRecorded(t *testing.T) {
	for p, want := range map[v1.RestartPolicy]v1.PodPhase{
		v1.RestartPolicyNever: v1.PodSucceeded, v1.RestartPolicyOnFailure: v1.PodSucceeded, v1.RestartPolicyAlways: v1.PodPending,
	} {
		w := policy(t, p)
		w.Memory.Completion = &model.Completion{Phase: v1.PodSucceeded, At: modeltest.Noon().Add(-time.Minute)}
		if got := podOf(w); got.Phase != want || got.Over() != (want == v1.PodSucceeded) {
			t.Errorf("%s: %s, over %t", p, got.Phase, got.Over())
		}
	}
}

// TestStartErrorsDecideNoPhase checks that a start error is shown, but that the container counts as ended.
func TestStartErrorsDecideNoPhase(t *testing.T) {
	for states, want := range map[string]v1.PodPhase{"app=Exited:1": v1.PodRunning, "app=Created": v1.PodPending, "": v1.PodPending} {
		w := policy(t, v1.RestartPolicyAlways).Sandbox("s0", 0, model.SandboxReady).States(states)
		w.Memory.StartErrors = map[string]model.StartError{"app": {Reason: "ErrImagePull"}}
		if got := podOf(w).Phase; got != want {
			t.Errorf("%q: %s", states, got)
		}
	}
}

// TestPhaseDuringDeletion checks that a deletion, which removes the records of a pod that ran, does not make it
// Pending. A pod that never ran stays Pending.
func TestPhaseDuringDeletion(t *testing.T) {
	for _, test := range []struct {
		deletion *model.Deletion
		ran      map[string]string
		want     v1.PodPhase
	}{
		{&model.Deletion{}, map[string]string{"app": "app-0"}, v1.PodRunning},
		{&model.Deletion{}, map[string]string{"seed": "seed-0"}, v1.PodPending},
		{nil, map[string]string{"app": "app-0"}, v1.PodPending},
	} {
		w := policy(t, v1.RestartPolicyAlways)
		w.Memory.Deletion, w.Memory.LastRun = test.deletion, &model.LastRun{Sandbox: "s0", Containers: test.ran}
		if got := podOf(w).Phase; got != test.want {
			t.Errorf("deletion %v of a pod that ran %v: %s", test.deletion, test.ran, got)
		}
	}
	w := policy(t, v1.RestartPolicyAlways)
	w.Memory.Deletion = &model.Deletion{}
	if got := podOf(w).Phase; got != v1.PodPending {
		t.Errorf("deletion of a pod that never ran: %s", got)
	}
}
