package inspect

import (
	"testing"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

// TestCountText: the count is the number of equal verdicts in a row, independent of the result of the probe.
func TestCountText(t *testing.T) {
	fails, passes := probe.Result{Verdict: probe.Failure}, probe.Result{Verdict: probe.Success}
	first := model.ProbeRecord{Result: model.ProbeFailure, Last: model.ProbeFailure, Run: 1}
	running := model.ProbeRecord{Result: model.ProbeSuccess, Last: model.ProbeSuccess, Run: 7}
	for name, c := range map[string]struct {
		report probe.Report
		want   string
	}{
		"not run": {probe.Report{Threshold: 3}, "-"},
		"unknown": {
			probe.Report{Ran: true, Result: probe.Result{Verdict: probe.Unknown}, Threshold: 3}, "-",
		},
		"readiness, first failure": {probe.Report{Result: fails, Record: first, Threshold: 5, Counted: true}, "1/5"},
		"passes as often as before": {
			probe.Report{Result: passes, Record: running, Threshold: 1, Counted: true}, "1/1",
		},
		"a failure before the period": {
			probe.Report{Result: fails, Record: running, Threshold: 3}, "0/3 (not counted: too soon)",
		},
		"liveness that has failed": {probe.Report{
			Result:    fails,
			Record:    model.ProbeRecord{Result: model.ProbeFailure, Last: model.ProbeFailure, OnHold: true},
			Threshold: 3, Counted: true,
		}, "3/3"},
	} {
		c.report.Ran = c.want != "-" || name == "unknown"
		if got := countText(&c.report); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNothingWaitsForAFailedStartup: when a startup probe has failed, the probes that wait for it do not run, and
// podctl does not wait for them.
func TestNothingWaitsForAFailedStartup(t *testing.T) {
	failed := model.ProbeRecord{Result: model.ProbeFailure, Last: model.ProbeFailure, Run: 2}
	readiness := probe.Report{Container: "a", ContainerID: "1", Type: model.Readiness, Threshold: 1}
	for name, c := range map[string]struct {
		startup probe.Report
		want    bool
	}{
		"failed": {
			probe.Report{Container: "a", ContainerID: "1", Type: model.Startup, Threshold: 2, Record: failed}, true,
		},
		"one failure of two": {
			probe.Report{Container: "a", ContainerID: "1", Type: model.Startup, Threshold: 3, Record: failed},
			false,
		},
		"another container's": {
			probe.Report{Container: "b", ContainerID: "2", Type: model.Startup, Threshold: 2, Record: failed},
			false,
		},
	} {
		reports := []probe.Report{c.startup, readiness}
		if got := blockedByStartup(reports, &readiness); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if code := probeCode(reports, decided); c.want && code != exit.ProbeFailed {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
}
