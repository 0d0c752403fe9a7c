package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// objectLines lists the objects of a plan with the kinds of their steps.
func objectLines(p *Plan) []string {
	words := map[Action]string{
		Kept: "kept", Held: "held", Prepared: "prepared", Rotated: "rotated", CleanedUp: "cleaned up", Removed: "removed",
		Updated: "updated", Stopped: "stopped", Started: "started", Replaced: "replaced",
	}
	var list []string
	for i := range p.Objects {
		o := &p.Objects[i]
		line := fmt.Sprintf("%s %s %s", o.Name, words[o.Action], o.Reason)
		for _, s := range p.StepsOf(o) {
			line += " " + string(s.Kind)
		}
		list = append(list, line)
	}
	return list
}

// TestObjects checks that each object is listed once, in the order of the changes.
func TestObjects(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(pod *v1.Pod)
		only func(*Step) bool
		want []string
	}{
		"an edit": {
			func(pod *v1.Pod) { pod.Spec.Containers[0].Args = []string{"x"} }, nil,
			[]string{
				"sandbox kept Running",
				"seed kept InitDone",
				"log kept Running",
				"app replaced SpecChanged StopContainer StartContainer",
			},
		},
		"without the start": {
			func(pod *v1.Pod) { pod.Spec.Containers[0].Args = []string{"x"} }, func(s *Step) bool { return s.Kind != StartContainer },
			[]string{"sandbox kept Running", "seed kept InitDone", "log kept Running", "app stopped SpecChanged StopContainer"},
		},
		"one that left": {
			func(pod *v1.Pod) { pod.Spec.Containers = pod.Spec.Containers[1:] }, nil,
			[]string{
				"sandbox kept Running",
				"seed kept InitDone",
				"log kept Running",
				"app stopped RemovedFromSpec StopContainer RemoveContainer",
			},
		},
		"a new sandbox": {
			func(pod *v1.Pod) { pod.Spec.Hostname = "x" }, nil,
			[]string{
				"sandbox replaced SandboxConfigChanged StopSandbox RunSandbox",
				"seed started SandboxReplaced RemoveContainer StartContainer",
				"app stopped SandboxConfigChanged StopContainer", "log stopped SandboxConfigChanged StopContainer",
			},
		},
		"a held one": {
			func(pod *v1.Pod) {
				pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{
					Name:            "new",
					Image:           "absent:1",
					ImagePullPolicy: v1.PullNever,
				})
			}, nil,
			[]string{"sandbox kept Running", "seed kept InitDone", "app kept Running", "log kept Running", "new held ErrImageNeverPull"},
		},
	} {
		w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
		w.Images["absent:1"] = model.Image{}
		w.Desired = modeltest.Load(t, modeltest.WebPod)
		c.edit(w.Desired.Pod)
		p := makePlan(w)
		if c.only != nil {
			p.Only(c.only)
		}
		if diff := cmp.Diff(c.want, objectLines(p)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestObjectsOfLeftovers checks that the containers of a deleted pod end before its sandbox, and that leftovers come
// last.
func TestObjectsOfLeftovers(t *testing.T) {
	in := inputOf(modeltest.Running(modeltest.Load(t, modeltest.WebPod)))
	in.Desired = nil
	var names []string
	p := Make(in)
	for i := range p.Objects {
		names = append(names, p.Objects[i].Name)
	}
	if want := []string{"app", "log", "seed", "sandbox", "volumes", "cgroup", "logs"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}
