package runtime

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// unseen simulates cgroups whose processes are not visible.
type unseen struct{ cgroup.Groups }

func (unseen) Occupants([]string, string, int) (cgroup.Processes, bool) { return nil, false }

// dying simulates cgroups of containers that have just ended.
type dying struct{ cgroup.Groups }

func (dying) Occupants([]string, string, int) (cgroup.Processes, bool) { return ended{}, true }

type ended struct{}

func (ended) Left() bool { return false }
func (ended) Close()     {}

// replacement returns a pod whose container changes.
func replacement(t *testing.T) (f *faultLab, edited string) {
	t.Helper()
	f = newFaultLab(t, faultShape{before: tripPod("web")})
	return f, strings.Replace(tripPod("web"), "name: a, image: 'i:1'", "name: a, image: 'i:2'", 1)
}

// TestReplacementStartsOnceNoProcessIsLeft checks that the replacement starts before the runtime has finished the stop,
// also if the answer of the stop is lost.
func TestReplacementStartsOnceNoProcessIsLeft(t *testing.T) {
	f, edited := replacement(t)
	// If the start waited for the answer to the stop, the pass would not end.
	f.proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", KillAfter: f.awaitStart})
	reported := f.apply(t, edited)
	if stop, start := slices.Index(reported, "StopContainer"), slices.Index(reported, "StartContainer"); stop < 0 || stop > start {
		t.Errorf("reported in the order %v", reported)
	}
}

// TestReplacementWaitsForTheLastProcess checks that a container that the runtime does not stop is not replaced, however
// long that takes.
func TestReplacementWaitsForTheLastProcess(t *testing.T) {
	f, edited := replacement(t)
	f.proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", Delay: 100 * time.Millisecond, Fail: codes.Internal})
	f.engine.Pods.Apply(t.Context(), f.load(edited), executor.Options{}) //nolint:errcheck // another test checks the failure
	if f.proxy.Count("StartContainer") > 0 {
		t.Error("it was started while a process was left")
	}
}

// TestFailedStopAfterReplacementBegan checks a runtime that reports a container as running although
// its processes are gone. The pass fails, and the next one stops the container.
func TestFailedStopAfterReplacementBegan(t *testing.T) {
	f, edited := replacement(t)
	f.restart(f.engine.Client, func(s *Settings) { s.Cgroups = dying{s.Cgroups} })
	f.proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", Await: f.awaitStart, Fail: codes.Internal})
	outcome, err := f.engine.Pods.Apply(t.Context(), f.load(edited), executor.Options{})
	if err != nil || outcome.Err() == nil || f.proxy.Count("StartContainer") != 1 {
		t.Fatalf("%v, %v, %d starts", err, outcome.Err(), f.proxy.Count("StartContainer"))
	}
	p, err := f.engine.Pods.Plan(t.Context(), f.load(edited), plan.Options{})
	if err != nil || len(p.Steps) != 1 || p.Steps[0].Kind != plan.StopContainer || p.Steps[0].Reason != model.Superseded {
		t.Fatalf("%v, %+v", err, p.Steps)
	}
	if err := f.converge(edited); err != nil {
		t.Fatal(err)
	}
}

// TestReplacementWaitsForInvisibleProcesses checks that the runtime's answer counts if the container's processes are
// not visible.
func TestReplacementWaitsForInvisibleProcesses(t *testing.T) {
	f, edited := replacement(t)
	f.restart(f.engine.Client, func(s *Settings) { s.Cgroups = unseen{s.Cgroups} })
	f.proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", Delay: 50 * time.Millisecond, KillAfter: func() {
		time.Sleep(50 * time.Millisecond)
		if f.proxy.Count("StartContainer") > 0 {
			t.Error("it was started before the runtime's answer")
		}
	}})
	f.apply(t, edited)
}

// apply makes a pass, and returns the kinds of its steps in the order in which their ends were reported.
func (f *faultLab) apply(t *testing.T, text string) (reported []string) {
	t.Helper()
	outcome, err := f.engine.Pods.Apply(t.Context(), f.load(text), executor.Options{Report: func(ev executor.Event) {
		if ev.Kind == executor.StepDone {
			reported = append(reported, string(ev.Step.Kind))
		}
	}})
	if err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	return reported
}

// awaitStart waits until a container is started.
func (f *faultLab) awaitStart() {
	for f.proxy.Count("StartContainer") == 0 && f.t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// TestContainerWithImpossibleReplacementRuns checks that a container keeps running if its replacement can never be
// created.
func TestContainerWithImpossibleReplacementRuns(t *testing.T) {
	for field, word := range map[string]string{
		"workingDir: data": "not an absolute path",
		"securityContext: {seccompProfile: {type: Localhost, localhostProfile: missing.json}}": "missing.json",
	} {
		f, edited := replacement(t)
		before := f.state()
		p, err := f.once(strings.Replace(edited, "name: a, image: 'i:2'", "name: a, image: 'i:2', "+field, 1))
		if err != nil || len(p.Holds) != 1 || !strings.Contains(p.Holds[0].Message, word) {
			t.Errorf("%s: %v, %+v", field, err, p)
		}
		if diff := cmp.Diff(before, f.state()); diff != "" {
			t.Errorf("%s: (-before +after)\n%s", field, diff)
		}
	}
}
