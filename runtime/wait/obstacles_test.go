package wait

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
)

// TestWaitings checks the obstacles of held and of running containers.
func TestWaitings(t *testing.T) {
	const ready = "readinessProbe: {tcpSocket: {port: 1}, failureThreshold: 3}"
	const startup = "startupProbe: {tcpSocket: {port: 1}, failureThreshold: 30}"
	refused := func(run int32) model.ProbeRecord {
		return model.ProbeRecord{Result: model.ProbeFailure, Last: model.ProbeFailure, Run: run, Message: "refused"}
	}
	for name, c := range map[string]struct {
		spec   string
		probes map[model.ProbeType]model.ProbeRecord
		goal   Goal
		want   []string
	}{
		"readiness": {
			ready,
			map[model.ProbeType]model.ProbeRecord{model.Readiness: refused(2)},
			Ready,
			[]string{"a: readiness probe (2/3): refused"},
		},
		"for long": {
			ready,
			map[model.ProbeType]model.ProbeRecord{model.Readiness: refused(17)},
			Ready,
			[]string{"a: readiness probe (17 times): refused"},
		},
		"not asked":         {ready, nil, Ready, []string{"a: readiness probe: has not run yet"}},
		"started is enough": {ready, nil, Started, nil},
		"startup": {
			startup,
			map[model.ProbeType]model.ProbeRecord{model.Startup: refused(4)},
			Ready,
			[]string{"a: startup probe (4/30): refused"},
		},
		"runs to its end":     {"tty: false", nil, Completed, []string{"a: runs"}},
		"nothing to wait for": {"tty: false", nil, Ready, nil},
		"successes count, too": {
			"readinessProbe: {tcpSocket: {port: 1}, successThreshold: 2}",
			map[model.ProbeType]model.ProbeRecord{
				model.Readiness: {Result: model.ProbeFailure, Last: model.ProbeSuccess, Run: 1},
			},
			Ready,
			[]string{"a: readiness probe (1/2): passed"},
		},
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.Pod("  containers: [{name: a, image: i:1, "+c.spec+"}]\n"))).
			Sandbox("s0", 0, model.SandboxReady).States("a=Running")
		w.Memory.Probes = map[string]map[model.ProbeType]model.ProbeRecord{w.Containers[0].ID: c.probes}
		in := &plan.Input{Input: podstatus.Input{Desired: w.Desired, Observed: w.Observed, Now: modeltest.Noon()}}
		status := podstatus.Of(in.State())
		var got []string
		for _, one := range obstacles(in, &status, plan.Make(in), c.goal) {
			got = append(got, one.Container+": "+one.Text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestHoldings checks that a hold may have an end or none.
func TestHoldings(t *testing.T) {
	until := time.Unix(9, 0)
	for _, c := range []struct {
		hold plan.Hold
		want Obstacle
	}{
		{plan.Hold{Container: "a", Message: "back-off", Until: &until}, Obstacle{Container: "a", Text: "back-off", Until: until}},
		{plan.Hold{Message: "the port is taken"}, Obstacle{Text: "the port is taken"}},
	} {
		if diff := cmp.Diff(c.want, holding(&c.hold)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
