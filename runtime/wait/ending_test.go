package wait

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
)

// TestBrokenContainers checks that the last failure explains why a container does not run. One that has only not
// started yet is not listed.
func TestBrokenContainers(t *testing.T) {
	state := func(waiting *v1.ContainerStateWaiting, ended *v1.ContainerStateTerminated) v1.ContainerState {
		return v1.ContainerState{Waiting: waiting, Terminated: ended}
	}
	noFile := &v1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "no\nsuch file"}
	held := &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"}
	for want, s := range map[string]v1.ContainerStatus{
		"": {Name: "a", State: state(&v1.ContainerStateWaiting{Reason: "ContainerCreating"}, nil)},
		"container a exited 128 (StartError: no such file)": {Name: "a", State: state(nil, noFile)},
		"container a: CrashLoopBackOff: back-off 10s":       {Name: "a", State: state(held, nil)},
		"container a: CrashLoopBackOff: back-off 10s; it exited 128 (StartError: no such file)": {
			Name:                 "a",
			State:                state(held, nil),
			LastTerminationState: state(nil, noFile),
		},
	} {
		got := broken(&v1.PodStatus{
			ContainerStatuses: []v1.ContainerStatus{s, {Name: "b", State: state(nil, &v1.ContainerStateTerminated{})}},
		})
		if (want == "" && len(got) > 0) || (want != "" && !slices.Equal(got, []string{want})) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestHeldFailuresAreReportedOnce checks that a failed start that a restart delay holds appears only in the hold, and
// that other failures appear beside it.
func TestHeldFailuresAreReportedOnce(t *testing.T) {
	w, _ := at(time.Now(), loadPod(t, onePod()), Ready)
	w.trouble = []string{"pod default/web: container a: RunContainerError: no such file", "the registry is away"}
	until := time.Now().Add(time.Minute)
	p := &plan.Plan{Holds: []plan.Hold{{
		Container: "a",
		Reason:    model.CrashLoopBackOff,
		Until:     &until,
		Message:   "so long",
		Delay:     &podstatus.Delay{Cause: "RunContainerError: no such file"},
	}}}
	if got := w.otherFailures(p); !slices.Equal(got, []string{"the registry is away"}) {
		t.Errorf("%q", got)
	}
	p.Holds[0].Delay = nil
	if got := w.otherFailures(p); !slices.Equal(got, w.trouble) {
		t.Errorf("without a delay: %q", got)
	}
}
