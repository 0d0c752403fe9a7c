package wait

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// TestReachedInTimeIfOnlyJust: the time may run out in the moment in which a goal is reached.
func TestReachedInTimeIfOnlyJust(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-ctx.Done()
	if err := (&waiter{goal: Ready}).translate(ctx, nil); err != nil {
		t.Error(err)
	}
}

// TestStarted: a container that ended well before anybody looked has been started, one that
// crashed or waits has not, a sidecar among them.
func TestStarted(t *testing.T) {
	ended := func(code int32) v1.ContainerStatus {
		return v1.ContainerStatus{Started: new(false), State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}}
	}
	runs, waits := v1.ContainerStatus{Started: new(true)}, v1.ContainerStatus{Started: new(false)}
	always := v1.ContainerRestartPolicyAlways
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "init"}, {Name: "side", RestartPolicy: &always}},
		Containers:     []v1.Container{{Name: "a"}, {Name: "b"}},
	}}
	w := &waiter{goal: Started, desired: &podspec.Desired{Pod: pod}}
	for name, c := range map[string]struct {
		init, side, a, b v1.ContainerStatus
		want             bool
	}{
		"all run":                   {ended(0), runs, runs, runs, true},
		"one ended":                 {ended(0), runs, ended(0), runs, true},
		"one failed":                {ended(0), runs, ended(1), runs, false},
		"a sidecar crashed":         {ended(0), waits, runs, runs, false},
		"the record of one is gone": {waits, runs, runs, runs, true},
	} {
		c.init.Name, c.side.Name, c.a.Name, c.b.Name = "init", "side", "a", "b"
		status := &v1.PodStatus{
			Phase: v1.PodRunning, InitContainerStatuses: []v1.ContainerStatus{c.init, c.side}, ContainerStatuses: []v1.ContainerStatus{c.a, c.b},
		}
		if got := w.reached(status); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
