package runtime

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// restartsAllOnOne is a pod with an init container, a sidecar and two regular containers. The first regular one
// restarts all containers if it exits 1.
const restartsAllOnOne = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: Never
  initContainers: [{name: i, image: 'i:1'}, {name: s, image: 'i:1', restartPolicy: Always}]
  containers:
  - name: a
    image: 'i:1'
    restartPolicy: Never
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [1]}}]
  - {name: b, image: 'i:1'}
`

// describe describes the pod's phase and, by container, state, restart count and last end.
func (f *faultLab) describe(text string) []string {
	f.t.Helper()
	pods, err := f.engine.Lister.List(f.t.Context(), []*podspec.Desired{f.load(text)})
	if err != nil {
		f.t.Fatal(err)
	}
	status := &pods[0].Status
	words := []string{string(status.Phase)}
	for _, s := range append(status.InitContainerStatuses, status.ContainerStatuses...) {
		words = append(words, fmt.Sprintf("%s %s %d%s",
			s.Name, stateText(s.State), s.RestartCount, endText(s.LastTerminationState)))
	}
	return words
}

func stateText(s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "Running"
	case s.Terminated != nil:
		return s.Terminated.Reason
	case s.Waiting != nil:
		return s.Waiting.Reason
	}
	return ""
}

func endText(s v1.ContainerState) string {
	if s.Terminated == nil {
		return ""
	}
	return fmt.Sprintf(" after %d %s", s.Terminated.ExitCode, s.Terminated.Reason)
}

// TestStatusWhileAllRestart checks the status between the pass that removes all records and those that start the
// containers again. It must not look like that of a pod that never ran (kubelet: convertToAPIContainerStatuses,
// getPhase).
func TestStatusWhileAllRestart(t *testing.T) {
	f := newFaultLab(t, faultShape{
		before: restartsAllOnOne,
		behave: map[string][]runtimetest.Behaviour{"i": {{After: time.Second}, {After: time.Second}}},
	})
	f.server.Exit("a", 1)
	const reset, after = " RestartingAllContainers 1 after 137 RestartingAllContainers", " 1 after 137 RestartingAllContainers"
	for _, c := range []struct {
		passes bool
		want   []string
	}{
		{true, []string{"Running", "i" + reset, "s" + reset, "a" + reset, "b" + reset}},
		{true, []string{
			"Pending", "i Running" + after, "s PodInitializing" + after, "a PodInitializing" + after,
			"b PodInitializing" + after,
		}},
		{false, []string{
			"Running", "i Completed" + after, "s PodInitializing" + after, "a PodInitializing" + after,
			"b PodInitializing" + after,
		}},
		{true, []string{"Running", "i Completed" + after, "s Running" + after, "a PodInitializing" + after, "b PodInitializing" + after}},
		{true, []string{"Running", "i Completed" + after, "s Running" + after, "a Running" + after, "b Running" + after}},
	} {
		if c.passes {
			if _, err := f.once(restartsAllOnOne); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(c.want, f.describe(restartsAllOnOne)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if c.want[0] == "Pending" {
			f.clock.Advance(time.Second)
		}
	}
	f.server.Lose("b")
	if got := f.describe(restartsAllOnOne); got[4] != "b PodInitializing 0" {
		t.Errorf("what others removed: %q", got)
	}
}
