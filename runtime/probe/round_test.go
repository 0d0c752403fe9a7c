package probe

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// everyTen returns a probe with a period of ten seconds, for which one success or three failures decide.
func everyTen(delay int32) *v1.Probe {
	return &v1.Probe{
		ProbeHandler:        v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"x"}}},
		InitialDelaySeconds: delay, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
	}
}

// roundOf returns a round for one container that has run for a minute.
func roundOf(c *v1.Container, opts Options) *round {
	c.Name = "a"
	return &round{
		desired: &podspec.Desired{Pod: &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{*c}}}}, now: noon, opts: opts,
		observed: model.Observed{Containers: []model.Container{
			{ID: "id", Name: "a", State: model.Running, StartedAt: noon.Add(-time.Minute)},
		}},
	}
}

// TestAddressesOfProbes checks that a probe is sent to the sandbox of its container. For a pod in the node's network,
// it is sent to the node.
func TestAddressesOfProbes(t *testing.T) {
	ready := func(id, ip string) model.Sandbox {
		return model.Sandbox{ID: id, State: model.SandboxReady, IPs: []string{ip}}
	}
	for name, c := range map[string]struct {
		sandboxes []model.Sandbox
		want      string
	}{
		"its own": {[]model.Sandbox{ready("b", "10.0.0.3"), ready("s", "10.0.0.2")}, "10.0.0.2"},
		"not another's": {
			[]model.Sandbox{ready("b", "10.0.0.3"), {ID: "s", State: model.SandboxNotReady, IPs: []string{"10.0.0.2"}}},
			"",
		},
		"none":                  {nil, ""},
		"in the node's network": {[]model.Sandbox{{ID: "s", State: model.SandboxReady, HostNetwork: true}}, "192.0.2.7"},
	} {
		q := roundOf(&v1.Container{}, Options{})
		q.observed.Containers[0].SandboxID, q.observed.Sandboxes, q.observed.NodeIPs = "s", c.sandboxes, []string{"192.0.2.7"}
		if got := q.podIP("a"); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// TestSkippedProbes checks the reasons. Without a schedule more probes run than with one.
func TestSkippedProbes(t *testing.T) {
	counted := func(ago time.Duration, onHold bool) map[model.ProbeType]model.ProbeRecord {
		return map[model.ProbeType]model.ProbeRecord{model.Liveness: {
			Result:    model.ProbeSuccess,
			Last:      model.ProbeSuccess,
			Run:       1,
			CountedAt: noon.Add(-ago),
			OnHold:    onHold,
		}}
	}
	startup := func(result model.ProbeResult) map[model.ProbeType]model.ProbeRecord {
		return map[model.ProbeType]model.ProbeRecord{model.Startup: {Result: result, Last: result, CountedAt: noon.Add(-time.Minute)}}
	}
	alive, slow := v1.Container{LivenessProbe: everyTen(0)}, v1.Container{LivenessProbe: everyTen(90)}
	starts := v1.Container{StartupProbe: everyTen(0), LivenessProbe: everyTen(0)}
	for name, c := range map[string]struct {
		container v1.Container
		probe     model.ProbeType
		records   map[model.ProbeType]model.ProbeRecord
		due       bool
		want      string
	}{
		"a new container":                  {alive, model.Liveness, nil, true, ""},
		"its delay":                        {slow, model.Liveness, nil, false, "initial delay: 1m0s of 1m30s have passed"},
		"its period has passed":            {alive, model.Liveness, counted(10*time.Second, false), true, ""},
		"its period has not passed":        {alive, model.Liveness, counted(9*time.Second, false), true, "its period has not passed"},
		"without a schedule":               {alive, model.Liveness, counted(9*time.Second, false), false, ""},
		"decided":                          {alive, model.Liveness, counted(time.Minute, true), true, "decided already"},
		"decided, without a schedule":      {alive, model.Liveness, counted(time.Minute, true), false, ""},
		"the startup probe has not passed": {starts, model.Liveness, startup(model.ProbeUnknown), false, "waits for the startup probe"},
		"the startup probe has passed":     {starts, model.Liveness, startup(model.ProbeSuccess), true, ""},
		"the startup probe":                {starts, model.Startup, startup(model.ProbeUnknown), true, ""},
		"the startup probe, passed":        {starts, model.Startup, startup(model.ProbeSuccess), true, "passed already"},
	} {
		q := roundOf(&c.container, Options{Due: c.due, Type: c.probe})
		q.observed.Memory.Probes = map[string]map[model.ProbeType]model.ProbeRecord{"id": c.records}
		reports := q.list()
		if len(reports) != 1 || reports[0].Type != c.probe || reports[0].Skipped != c.want || reports[0].ContainerID != "id" {
			t.Errorf("%s: %+v, want %q", name, reports, c.want)
		}
	}
}

// TestProbesOfARound checks that the selected probes of the newest container run. A container that does not run is not
// probed, and a clock that was set back delays nothing.
func TestProbesOfARound(t *testing.T) {
	c := v1.Container{LivenessProbe: everyTen(0), ReadinessProbe: everyTen(0)}
	for want, opts := range map[int]Options{2: {}, 1: {Type: model.Readiness}, 0: {Container: "b"}} {
		if got := roundOf(&c, opts).list(); len(got) != want {
			t.Errorf("%+v: %d probes", opts, len(got))
		}
	}
	q := roundOf(&c, Options{})
	q.observed.Containers = append(q.observed.Containers, model.Container{ID: "new", Name: "a", RestartCount: 1, State: model.Exited})
	for _, r := range q.list() {
		if r.Skipped != "container is not running" || r.ContainerID != "" {
			t.Errorf("the newest has ended: %+v", r)
		}
	}
	q = roundOf(&c, Options{})
	q.observed.Containers[0].Starting = true
	for _, r := range q.list() {
		if r.Skipped != "its postStart hook is running" {
			t.Errorf("its hook runs: %+v", r)
		}
	}
	slow := v1.Container{LivenessProbe: everyTen(90)}
	q = roundOf(&slow, Options{})
	q.observed.Containers[0].StartedAt = noon.Add(24 * time.Hour)
	if r := q.list()[0]; r.Skipped != "" {
		t.Errorf("the clock was set back: %q", r.Skipped)
	}
}

// TestResultsOfOtherProcesses checks that a newer result of another process stays. An earlier result is counted on.
func TestResultsOfOtherProcesses(t *testing.T) {
	failure := func(at time.Time, run int32) Memory {
		return Memory{"id": {model.Liveness: {Result: model.ProbeSuccess, Last: model.ProbeFailure, Run: run, CountedAt: at}}}
	}
	before := failure(noon.Add(-time.Minute), 1)
	for name, c := range map[string]struct {
		now     Memory
		run     int32
		counted bool
	}{
		"no other run":                   {before, 2, true},
		"another run after":              {failure(noon.Add(time.Second), 7), 7, false},
		"another run just now":           {failure(noon.Add(-time.Second), 7), 7, false},
		"another run earlier":            {failure(noon.Add(-30*time.Second), 7), 7 + 1, true},
		"the other result was forgotten": {Memory{}, 1, true},
	} {
		r := Report{ContainerID: "id", Type: model.Liveness, Ran: true, Result: Result{Verdict: Failure}, Probe: everyTen(0)}
		r.Probe.FailureThreshold = 100
		r.rebase(c.now, before, noon)
		if r.Record.Run != c.run || r.Counted != c.counted || r.Record.Result != model.ProbeSuccess {
			t.Errorf("%s: counted %t, %+v", name, r.Counted, r.Record)
		}
	}
}

// TestRecordsOfMissingContainersAreDropped checks that their records are dropped, except those that another process has
// added since.
func TestRecordsOfMissingContainersAreDropped(t *testing.T) {
	records := map[model.ProbeType]model.ProbeRecord{model.Liveness: {}}
	j := &state.Checkpoint{Memory: model.Memory{Probes: Memory{"gone": records, "since": records}}}
	before, there := Memory{"gone": records}, idsOf(&snapshot.Pod{})
	dropped := keepProbes(j, before, there, []Report{
		{ContainerID: "id", Type: model.Readiness, Changed: true},
		{ContainerID: "other", Type: model.Readiness},
	})
	var ids []string
	for id := range j.Probes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if !dropped || !slices.Equal(ids, []string{"id", "since"}) {
		t.Errorf("dropped %t, kept %v", dropped, ids)
	}
	j = &state.Checkpoint{}
	if dropped := keepProbes(j, before, there, []Report{{ContainerID: "id", Changed: true}}); dropped || len(j.Probes) != 1 {
		t.Errorf("a pod without a memory has %v", j.Probes)
	}
	j.Probes = Memory{"gone": records}
	if dropped := keepProbes(j, before, nil, nil); dropped || len(j.Probes) != 1 {
		t.Errorf("without a list of containers it has %v", j.Probes)
	}
}

// TestEventsOfProbes checks that failures and warnings become events with the kubelet's texts. The first success marks
// when a container counts as started or ready.
func TestEventsOfProbes(t *testing.T) {
	answer := func(kind model.ProbeType, verdict Verdict, result model.ProbeResult) Report {
		return Report{
			Container:   "a",
			ContainerID: "id",
			Type:        kind,
			IsEvent:     true,
			Result:      Result{Verdict: verdict, Message: "podctl: refused", Output: "refused"},
			Record:      model.ProbeRecord{Result: result},
		}
	}
	for name, c := range map[string]struct {
		answer Report
		event  string
		span   string
	}{
		"failure": {answer(model.Readiness, Failure, model.ProbeFailure), "Unhealthy Readiness probe failed: refused", ""},
		"no verdict": {
			answer(model.Liveness, Unknown, model.ProbeSuccess),
			"Unhealthy Liveness probe errored and resulted in unknown state: refused",
			"",
		},
		"warning": {answer(model.Liveness, Warning, model.ProbeSuccess), "ProbeWarning Liveness probe warning: refused", ""},
		"ready":   {answer(model.Readiness, Success, model.ProbeSuccess), "", "Ready of a"},
		"started": {answer(model.Startup, Success, model.ProbeSuccess), "", "Started of a"},
		"not yet": {answer(model.Readiness, Success, model.ProbeFailure), "", ""},
		"alive":   {answer(model.Liveness, Success, model.ProbeSuccess), "", ""},
		"not reported": {Report{
			Type:   model.Liveness,
			Result: Result{Verdict: Failure},
			Record: model.ProbeRecord{Result: model.ProbeFailure},
		}, "", ""},
	} {
		for known, before := range map[bool]Memory{false: nil, true: {"id": {c.answer.Type: {Result: model.ProbeSuccess}}}} {
			var r events.Recorder
			recordProbes(&r, noon, []Report{c.answer}, before)
			pod := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}.Pod("u")
			if err := r.Write(pod, model.PodRef{}, nil); err != nil {
				t.Fatal(err)
			}
			h, err := pod.History().Read()
			if err != nil {
				t.Fatal(err)
			}
			event, span := "", ""
			for _, e := range h.Events {
				event += e.Reason + " " + e.Message
			}
			for _, s := range h.Spans {
				span += s.Kind + " of " + s.Object
			}
			want := c.span
			if known {
				want = "" // It has passed before.
			}
			if event != c.event || span != want {
				t.Errorf("%s, known %t: event %q, span %q", name, known, event, span)
			}
		}
	}
}

// TestVerdictsOfReports checks that a warning is a success, and that a probe that did not run is unknown.
func TestVerdictsOfReports(t *testing.T) {
	for verdict, want := range map[Verdict]model.ProbeResult{
		Success: model.ProbeSuccess,
		Warning: model.ProbeSuccess,
		Failure: model.ProbeFailure,
		Unknown: model.ProbeUnknown,
	} {
		r := Report{Ran: true, Result: Result{Verdict: verdict}}
		if got := r.Verdict(); got != want {
			t.Errorf("%v: %s", verdict, got)
		}
		if r.Ran = false; r.Verdict() != model.ProbeUnknown {
			t.Errorf("%v, not asked: %s", verdict, r.Verdict())
		}
	}
	decided := Report{ContainerID: "id", Threshold: 3, Record: model.ProbeRecord{Last: model.ProbeFailure, Run: 3}}
	undecided := decided
	undecided.Record.Run = 2
	if !decided.Decided() || undecided.Decided() || (&Report{Record: model.ProbeRecord{OnHold: true}}).Decided() {
		t.Error("a probe is decided once its threshold is reached")
	}
}

// TestUnrecordedResults checks the text and the cause of the error.
func TestUnrecordedResults(t *testing.T) {
	cause := errors.New("no space")
	if err := error(&UnrecordedError{Err: cause}); !errors.Is(err, cause) ||
		!strings.HasSuffix(err.Error(), "recording the probe results: no space") {
		t.Error(err)
	}
}
