package podstatus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// inCluster returns the status of a pod with a state in the API.
func inCluster(w *modeltest.World, c *Cluster) v1.PodStatus {
	return Of(New(&Input{Desired: w.Desired, Observed: w.Observed, Now: modeltest.Noon(), Cluster: c}))
}

// TestObservedGeneration checks that the status and each condition have the applied generation, also those of a
// rejected pod, and that a mirror pod and a pod without a cluster have none.
func TestObservedGeneration(t *testing.T) {
	w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	for _, generation := range []int64{7, 0} {
		s := inCluster(w, &Cluster{Generation: generation})
		if s.ObservedGeneration != generation {
			t.Errorf("the status has generation %d, not %d", s.ObservedGeneration, generation)
		}
		for _, c := range s.Conditions {
			if c.ObservedGeneration != generation {
				t.Errorf("%s has generation %d, not %d", c.Type, c.ObservedGeneration, generation)
			}
		}
	}
	without, with := statusOf(w), inCluster(w, &Cluster{})
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("generation 0 changes the status (-without +with)\n%s", diff)
	}
	w.Memory.Rejection = &model.Rejection{Reason: "OutOfcpu"}
	if s := inCluster(w, &Cluster{Generation: 7}); s.ObservedGeneration != 7 {
		t.Errorf("a rejected pod has generation %d", s.ObservedGeneration)
	}
}

// TestGatesInTheAPI checks that Ready waits for the conditions that other programs set in the API (kubelet:
// TestGeneratePodReadyCondition).
func TestGatesInTheAPI(t *testing.T) {
	gated := strings.Replace(modeltest.WebPod, "spec:\n",
		"spec:\n  readinessGates: [{conditionType: a/b}, {conditionType: c/d}]\n", 1)
	w := modeltest.Running(modeltest.Load(t, gated))
	set := func(kind v1.PodConditionType, status v1.ConditionStatus) v1.PodCondition {
		return v1.PodCondition{Type: kind, Status: status}
	}
	for name, c := range map[string]struct {
		cluster *Cluster
		want    string
	}{
		"no cluster": {nil, "False ReadinessGatesNotReady " +
			`corresponding condition of pod readiness gate "a/b" does not exist., ` +
			`corresponding condition of pod readiness gate "c/d" does not exist.`},
		"one is missing": {
			&Cluster{Conditions: []v1.PodCondition{set("a/b", "True")}},
			`False ReadinessGatesNotReady corresponding condition of pod readiness gate "c/d" does not exist.`,
		},
		"one is false": {
			&Cluster{Conditions: []v1.PodCondition{set("a/b", "False"), set("c/d", "True")}},
			`False ReadinessGatesNotReady the status of pod readiness gate "a/b" is not "True", but False`,
		},
		"both are true": {&Cluster{Conditions: []v1.PodCondition{set("a/b", "True"), set("c/d", "True")}}, "True  "},
	} {
		for _, got := range inCluster(w, c.cluster).Conditions {
			text := strings.Join([]string{string(got.Status), got.Reason, got.Message}, " ")
			if got.Type == v1.PodReady && text != c.want {
				t.Errorf("%s: %s\nwant %s", name, text, c.want)
			}
		}
	}
}

// resizes lists the conditions of resizes.
func resizes(s *v1.PodStatus) (list []string) {
	for _, c := range s.Conditions {
		if c.Type == v1.PodResizePending || c.Type == v1.PodResizeInProgress {
			list = append(list,
				strings.TrimSpace(strings.Join([]string{string(c.Type), string(c.Status), c.Reason, c.Message}, " ")))
		}
	}
	return list
}

// TestResizeConditions checks that a running container with other cpu or memory than the applied version is being
// resized, and that a resize that cannot be made is pending.
func TestResizeConditions(t *testing.T) {
	w := web(t, "  containers: [{name: app, image: i:1, resources: {requests: {cpu: 100m}}}]\n")
	w.Sandbox("s0", 0, model.SandboxReady).States("app=Running")
	cpu := func(amount string) *model.Actuated {
		list := v1.ResourceList{v1.ResourceCPU: resource.MustParse(amount)}
		return &model.Actuated{Containers: map[string]v1.ResourceRequirements{"app": {Requests: list}}}
	}
	check := func(name string, c *Cluster, want ...string) {
		t.Helper()
		s := inCluster(w, c)
		if c != nil && s.AllocatedResources.Cpu().String() != "100m" {
			t.Errorf("%s: the pod has %s", name, s.AllocatedResources.Cpu())
		}
		if diff := cmp.Diff(want, resizes(&s)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	w.Memory.Actuated = cpu("0.1")
	check("nothing to resize", &Cluster{})
	w.Memory.Actuated = cpu("50m")
	check("the container has less", &Cluster{}, "PodResizeInProgress True")
	check("no cluster", nil)
	w.Memory.Actuated = cpu("100m")
	w.Memory.PendingResize = &model.PendingResize{Message: "no room", Generation: 3}
	check("it waits", &Cluster{}, "PodResizePending True Deferred no room")
	w.Memory.Actuated, w.Memory.Resizing = cpu("50m"), &model.Resizing{Generation: 2, Error: "too small"}
	check("one waits, and an earlier one fails", &Cluster{Generation: 4},
		"PodResizePending True Deferred no room", "PodResizeInProgress True Error too small")
	s := inCluster(w, &Cluster{Generation: 4})
	if a, b := s.Conditions[0].ObservedGeneration, s.Conditions[1].ObservedGeneration; a != 3 || b != 2 {
		t.Errorf("the conditions have the generations %d and %d", a, b)
	}
	w.Memory.PendingResize, w.Containers[0].State = nil, model.Exited
	check("it does not run", &Cluster{})
	w.Memory.Eviction, w.Memory.PendingResize = &model.Eviction{}, &model.PendingResize{}
	check("the pod has failed", &Cluster{})
}

// TestPodLevelResize checks that a pod whose own resources are not applied yet is being resized.
func TestPodLevelResize(t *testing.T) {
	w := web(t, "  resources: {limits: {cpu: \"2\"}}\n  containers: [{name: app, image: i:1}]\n")
	w.Sandbox("s0", 0, model.SandboxReady).States("app=Running")
	for limit, want := range map[string]int{"2": 0, "1": 1} {
		w.Memory.Actuated = &model.Actuated{Pod: &v1.ResourceRequirements{
			Limits: amounts("cpu=" + limit), Requests: amounts("cpu=2"),
		}}
		if s := inCluster(w, &Cluster{}); len(resizes(&s)) != want {
			t.Errorf("limit %s: %v", limit, resizes(&s))
		}
	}
}
