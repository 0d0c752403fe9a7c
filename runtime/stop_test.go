package runtime

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// twoThatStop is a pod with an init container and two regular ones.
func twoThatStop(policy string) string {
	return strings.Replace(`apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: POLICY
  initContainers: [{name: i, image: 'i:1'}]
  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:1'}]
`, "POLICY", policy, 1)
}

// run makes passes until the pod's init container has ended and the others run.
func (f *faultLab) run(text string) {
	f.t.Helper()
	f.settled(text)
	f.clock.Advance(2 * time.Second)
	f.settled(text)
}

// TestStoppedPodResumes checks that a temporary stop ends all containers, and that the next pass starts them again at
// once, also those that succeeded. A pod with restartPolicy Never stays stopped.
func TestStoppedPodResumes(t *testing.T) {
	for policy, want := range map[string][]string{
		"Always":    {"Running", "i Completed 1", "a Running 1 after 0 Completed", "b Running 1 after 0 Completed"},
		"OnFailure": {"Running", "i Completed 1", "a Running 1 after 0 Completed", "b Running 1 after 0 Completed"},
		"Never":     {"Succeeded", "i Completed 0", "a Completed 0", "b Completed 0"},
	} {
		t.Run(policy, func(t *testing.T) {
			text := twoThatStop(policy)
			f := newFaultLab(t, faultShape{behave: map[string][]runtimetest.Behaviour{
				"i": {{After: time.Second}, {After: time.Second}}, "a": {{Graceful: true}}, "b": {{Graceful: true}},
			}})
			f.run(text)
			stop := executor.Options{Options: plan.Options{Stop: true}}
			outcome, err := f.engine.Pods.Apply(t.Context(), f.load(text), stop)
			if err != nil || outcome.Err() != nil {
				t.Fatal(err, outcome.Err())
			}
			var done []plan.Kind
			for i := range outcome.Plan.Steps {
				done = append(done, outcome.Plan.Steps[i].Kind)
			}
			if diff := cmp.Diff([]plan.Kind{plan.StopContainer, plan.StopContainer, plan.StopSandbox}, done); diff != "" {
				t.Errorf("steps (-want +got)\n%s", diff)
			}
			again, err := f.engine.Pods.Plan(t.Context(), f.load(text), stop.Options)
			if err != nil || len(again.Steps) > 0 {
				t.Errorf("it is not stopped: %v, %v", again, err)
			}
			f.run(text)
			if diff := cmp.Diff(want, f.describe(text)); diff != "" {
				t.Errorf("after the next passes (-want +got)\n%s", diff)
			}
		})
	}
}

// TestStopOfAPodThatNeverRan checks that the plan has no steps.
func TestStopOfAPodThatNeverRan(t *testing.T) {
	f := newFaultLab(t, faultShape{})
	d := f.load(twoThatStop("Always"))
	p, err := f.engine.Pods.Plan(t.Context(), d, plan.Options{Stop: true})
	if err != nil || len(p.Steps) > 0 || p.KillPod {
		t.Errorf("%v, %v", p, err)
	}
}
