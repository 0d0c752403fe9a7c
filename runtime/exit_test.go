package runtime

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// watchedCgroups are cgroups whose processes can be seen.
type watchedCgroups struct {
	Cgroups
	left func() bool
}

func (w watchedCgroups) Occupied([]string, string) func() bool { return w.left }

// replacement is a pod whose container changes.
func replacement(t *testing.T) (f *faultLab, edited string) {
	t.Helper()
	f = newFaultLab(t, faultShape{before: tripPod("web")})
	return f, strings.Replace(tripPod("web"), "name: a, image: 'i:1'", "name: a, image: 'i:2'", 1)
}

// TestReplacementStartsOnceNoProcessIsLeft: the runtime is done with a stop only after it
// has been asked to start the replacement. That its answer is lost as well changes nothing.
func TestReplacementStartsOnceNoProcessIsLeft(t *testing.T) {
	f, edited := replacement(t)
	var stopped atomic.Bool
	f.engine.cgroups = watchedCgroups{f.engine.cgroups, func() bool { return !stopped.Load() }}
	early := false
	f.proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", KillAfter: func() {
		if f.proxy.Count("StartContainer") > 0 {
			t.Error("it was started while a process was left")
		}
		stopped.Store(true)
		early = eventually(func() bool { return f.proxy.Count("StartContainer") > 0 })
	}})
	told := f.apply(t, edited)
	if !early {
		t.Error("the start waited for the runtime's answer to the stop")
	}
	if stop, start := slices.Index(told, "StopContainer"), slices.Index(told, "StartContainer"); stop < 0 || stop > start {
		t.Errorf("told in the order %v", told)
	}
}

// TestReplacementWaitsForWhatNobodySees: where the container's processes cannot be seen
// its end is what the runtime says.
func TestReplacementWaitsForWhatNobodySees(t *testing.T) {
	f, edited := replacement(t)
	f.proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", KillAfter: func() {
		time.Sleep(50 * time.Millisecond)
		if f.proxy.Count("StartContainer") > 0 {
			t.Error("it was started before the runtime's answer")
		}
	}})
	f.apply(t, edited)
}

// apply makes a pass, and returns the kinds of its steps in the order in which their ends
// were told.
func (f *faultLab) apply(t *testing.T, text string) (told []string) {
	t.Helper()
	outcome, err := f.engine.Apply(t.Context(), f.load(text), Options{Report: func(ev Event) {
		if ev.Kind == StepDone {
			told = append(told, string(ev.Step.Kind))
		}
	}})
	if err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	return told
}

func eventually(done func() bool) bool {
	for range 500 {
		if done() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
