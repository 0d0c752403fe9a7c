package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/podstatus"
)

// TestPendingRestart checks that a container that podctl stopped to run again does so until it has run, whatever its
// exit code and policy are.
func TestPendingRestart(t *testing.T) {
	for name, c := range map[string]struct {
		policy v1.RestartPolicy
		// later is the state of a record that came after the stopped one.
		later   model.ContainerState
		pending bool
		// starts reports whether it starts, finished whether the pod has finished.
		starts, finished bool
	}{
		"stopped, OnFailure":         {v1.RestartPolicyOnFailure, "", true, true, false},
		"stopped, Never":             {v1.RestartPolicyNever, "", true, true, false},
		"created and not started":    {v1.RestartPolicyNever, model.Created, true, true, false},
		"started since, and ended":   {v1.RestartPolicyNever, model.Exited, true, false, true},
		"ended by itself, OnFailure": {v1.RestartPolicyOnFailure, "", false, false, true},
		"ended by itself, Never":     {v1.RestartPolicyNever, "", false, false, true},
	} {
		d := modeltest.Load(t, strings.Replace(modeltest.WebPod, "  - {name: log, image: i:1}\n", "", 1))
		d.Pod.Spec.RestartPolicy = c.policy
		w := modeltest.New(d).Sandbox("s1", 1, model.SandboxReady).Sandbox("s0", 0, model.SandboxNotReady)
		w.Container("s1", "seed", 0, model.Exited)
		stopped := w.Container("s0", "app", 0, model.Exited)
		if c.pending {
			w.Memory.PendingRestarts = map[string]string{"app": stopped.ID}
		}
		if c.later != "" {
			w.Container("s1", "app", 1, c.later)
		}
		p := makePlan(w)
		isStart := func(s Step) bool { return s.Kind == StartContainer && s.Container == "app" }
		if starts := slices.ContainsFunc(p.Steps, isStart); starts != c.starts {
			t.Errorf("%s: starts %t:\n%s", name, starts, strings.Join(lines(p), "\n"))
		}
		phase := podstatus.Of(inputOf(w).State()).Phase
		if finished := phase == v1.PodSucceeded || phase == v1.PodFailed; finished != c.finished {
			t.Errorf("%s: phase %s", name, phase)
		}
	}
}

// TestStopForAWhile checks that a later pass restarts the stopped containers, except in pods with restartPolicy Never.
func TestStopForAWhile(t *testing.T) {
	for policy, want := range map[v1.RestartPolicy]map[string]string{
		v1.RestartPolicyOnFailure: {"app": "app-0-of-s0", "log": "log-0-of-s0"},
		v1.RestartPolicyNever:     {},
	} {
		w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
		w.Desired.Pod.Spec.RestartPolicy = policy
		in := inputOf(w)
		in.Options.Stop = true
		p := Make(in)
		if diff := cmp.Diff(want, p.PendingRestarts()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", policy, diff)
		}
		if starts := steps(p.Steps).of(RunSandbox); len(starts) > 0 || !p.KillPod {
			t.Errorf("%s: the plan is %s", policy, strings.Join(lines(p), "\n"))
		}
	}
}

// TestPendingRestarts checks that the list contains the containers that a plan stops and starts, and with a new sandbox
// all regular ones. It excludes containers that left the manifest and those that stop for good.
func TestPendingRestarts(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(pod *v1.Pod)
		want map[string]string
	}{
		{"nothing", func(*v1.Pod) {}, map[string]string{}},
		{"an edit", func(pod *v1.Pod) { pod.Spec.Containers[0].Args = []string{"x"} }, map[string]string{"app": "app-0-of-s0"}},
		{"a new sandbox", func(pod *v1.Pod) { pod.Spec.Hostname = "x" }, map[string]string{"app": "app-0-of-s0", "log": "log-0-of-s0"}},
		{"one that left", func(pod *v1.Pod) { pod.Spec.Containers = pod.Spec.Containers[1:] }, map[string]string{}},
		{"both", func(pod *v1.Pod) {
			pod.Spec.Hostname, pod.Spec.Containers = "x", pod.Spec.Containers[1:]
		}, map[string]string{"log": "log-0-of-s0"}},
	} {
		w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
		w.Desired = modeltest.Load(t, modeltest.WebPod)
		c.edit(w.Desired.Pod)
		if diff := cmp.Diff(c.want, makePlan(w).PendingRestarts()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}
