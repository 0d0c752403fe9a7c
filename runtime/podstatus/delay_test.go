package podstatus

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// crashed returns a pod whose container exited with code 7 the given time ago.
func crashed(t *testing.T, ago time.Duration) *modeltest.World {
	t.Helper()
	w := policy(t, v1.RestartPolicyAlways).Sandbox("s0", 0, model.SandboxReady)
	w.Container("s0", "app", 3, model.Running)
	w.End("app", 7, ago)
	return w
}

func delayOf(w *modeltest.World, noBackoff bool) (Delay, bool) {
	ref, _ := podspec.FindContainer(w.Desired.Pod, "app")
	return New(&Input{Desired: w.Desired, Observed: w.Observed, Now: modeltest.Noon(), NoBackoff: noBackoff}).Delay(ref)
}

// TestDelayInForce checks that the delay counts from the end of the last run, and when it ends.
func TestDelayInForce(t *testing.T) {
	minute := modeltest.Noon().Add(-time.Minute)
	for name, c := range map[string]struct {
		ago     time.Duration
		backoff model.Backoff
		held    bool
	}{
		"at once":       {0, model.Backoff{Duration: 40 * time.Second, LastUpdate: minute}, true},
		"in the middle": {20 * time.Second, model.Backoff{Duration: 40 * time.Second, LastUpdate: minute}, true},
		"at its end":    {40 * time.Second, model.Backoff{Duration: 40 * time.Second, LastUpdate: minute}, false},
		"none":          {0, model.Backoff{}, false},
		"after a run of eleven minutes": {0, model.Backoff{
			Duration:   40 * time.Second,
			LastUpdate: modeltest.Noon().Add(-11 * time.Minute),
		}, false},
		"an end in the future":           {-time.Hour, model.Backoff{Duration: 40 * time.Second, LastUpdate: minute}, false},
		"an end in the future, by clock": {-10 * time.Second, model.Backoff{Duration: 40 * time.Second, LastUpdate: minute}, true},
		"of another definition":          {0, model.Backoff{Duration: 40 * time.Second, LastUpdate: minute, Key: "v1:0000"}, false},
	} {
		w := crashed(t, c.ago)
		w.Memory.Backoffs["app"] = c.backoff
		d, held := delayOf(w, false)
		if held != c.held {
			t.Errorf("%s: held %t", name, held)
		}
		want := Delay{Duration: 40 * time.Second, Until: modeltest.Noon().Add(40*time.Second - c.ago), ExitCode: 7}
		if held && d != want {
			t.Errorf("%s: %+v, not %+v", name, d, want)
		}
		if _, held := delayOf(w, true); held {
			t.Errorf("%s: it is held although the user lifted all delays", name)
		}
	}
}

// TestDelayOfTheSameDefinition checks that the delay applies only to the definition with its hash.
func TestDelayOfTheSameDefinition(t *testing.T) {
	w := crashed(t, 0)
	ref, _ := podspec.FindContainer(w.Desired.Pod, "app")
	w.Memory.Backoffs["app"] = model.Backoff{
		Duration:   10 * time.Second,
		LastUpdate: modeltest.Noon(),
		Key:        spechash.Container(w.Desired, ref.Container),
	}
	if _, held := delayOf(w, false); !held {
		t.Error("it is not held")
	}
}

// TestNothingDelaysAFirstStart also checks a start after a run that has not ended.
func TestNothingDelaysAFirstStart(t *testing.T) {
	for _, state := range []model.ContainerState{"", model.Created, model.Running, model.Unknown} {
		w := policy(t, v1.RestartPolicyAlways).Sandbox("s0", 0, model.SandboxReady)
		if state != "" {
			w.Container("s0", "app", 0, state)
		}
		w.Memory.Backoffs["app"] = model.Backoff{Duration: time.Minute, LastUpdate: modeltest.Noon()}
		if _, held := delayOf(w, false); held {
			t.Errorf("a container that is %q is held", state)
		}
	}
}

// TestEstimate checks that without podctl's record the restarts in the runtime's records count, and that the shortest
// possible time is assumed before the first of them.
func TestEstimate(t *testing.T) {
	for name, c := range map[string]struct {
		attempts []uint32
		want     time.Duration
	}{
		"a first run":                {[]uint32{0}, 0},
		"a fifth run alone":          {[]uint32{4}, 10 * time.Second},
		"two runs":                   {[]uint32{0, 1}, 10 * time.Second},
		"three runs":                 {[]uint32{0, 1, 2}, 20 * time.Second},
		"later runs":                 {[]uint32{3, 4, 5}, 40 * time.Second},
		"a gap":                      {[]uint32{0, 3, 4}, 20 * time.Second},
		"more than the longest time": {[]uint32{0, 1, 2, 3, 4, 5, 6, 7, 8}, 300 * time.Second},
	} {
		w := policy(t, v1.RestartPolicyAlways).Sandbox("s0", 0, model.SandboxReady)
		w.Memory.Backoffs = nil
		for i, attempt := range c.attempts {
			rec := w.Container("s0", "app", attempt, model.Exited)
			before := time.Duration(len(c.attempts)-1-i) * time.Second
			rec.StartedAt, rec.FinishedAt = modeltest.Noon().Add(-before), modeltest.Noon().Add(-before)
		}
		d, held := delayOf(w, false)
		if held != (c.want > 0) || d.Duration != c.want || d.Estimated != held {
			t.Errorf("%s: held %t for %s, estimated %t; not for %s", name, held, d.Duration, d.Estimated, c.want)
		}
	}
}

// TestCauseOfADelay checks that a delay names the recorded failure of the start, or else the runtime's reason. The
// message is included only if it is the runtime's own.
func TestCauseOfADelay(t *testing.T) {
	const long = "no\nsuch file"
	for name, c := range map[string]struct {
		reason  string
		failure *model.StartError
		want    string
	}{
		"an exit code":   {"Error", nil, "40s, exit code 7"},
		"out of memory":  {"OOMKilled", nil, "40s, exit code 7, OOMKilled"},
		"a failed start": {"StartError", nil, "40s, exit code 7, StartError: no such file"},
		"a failed hook": {
			"Error",
			&model.StartError{Reason: model.PostStartHookError, Message: "exited 1"},
			"40s, exit code 7, PostStartHookError: exited 1",
		},
		"without a cause": {"", nil, "40s, exit code 7"},
	} {
		w := crashed(t, 0)
		w.Memory.Backoffs["app"] = model.Backoff{Duration: 40 * time.Second, LastUpdate: modeltest.Noon().Add(-time.Minute)}
		newest := &w.Containers[len(w.Containers)-1]
		newest.Reason, newest.Message = c.reason, long
		if c.failure != nil {
			w.Memory.StartErrors = map[string]model.StartError{"app": *c.failure}
		}
		if d, held := delayOf(w, false); !held || d.String() != c.want {
			t.Errorf("%s: %q, want %q", name, d.String(), c.want)
		}
	}
}
