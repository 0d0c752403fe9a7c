package podstatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestVerdict checks that a missing probe, or one that never ran, is unknown, and that a failure is stale three periods
// after it was counted.
func TestVerdict(t *testing.T) {
	const probed = "  containers: [{name: app, image: i:1, livenessProbe: {exec: {command: [a]}, " +
		"periodSeconds: 10, failureThreshold: 3}}]\n"
	for name, c := range map[string]struct {
		kind   model.ProbeType
		record *model.ProbeRecord
		want   Verdict
	}{
		"not asked": {model.Liveness, nil, Verdict{Result: model.ProbeUnknown}},
		"no such probe": {
			model.Startup, &model.ProbeRecord{Result: model.ProbeFailure},
			Verdict{Result: model.ProbeUnknown},
		},
		"passed": {
			model.Liveness, &model.ProbeRecord{Result: model.ProbeSuccess, CountedAt: modeltest.Noon(), Message: "ok"},
			Verdict{Result: model.ProbeSuccess, HasRun: true, CountedAt: modeltest.Noon()},
		},
		"failed": {
			model.Liveness, &model.ProbeRecord{
				Result:    model.ProbeFailure,
				CountedAt: modeltest.Noon().Add(-30 * time.Second),
				Message:   "refused",
			},
			Verdict{
				Result:    model.ProbeFailure,
				HasRun:    true,
				Message:   "liveness probe failed: refused",
				CountedAt: modeltest.Noon().Add(-30 * time.Second),
			},
		},
		"failed long ago": {
			model.Liveness, &model.ProbeRecord{Result: model.ProbeFailure, CountedAt: modeltest.Noon().Add(-31 * time.Second)},
			Verdict{
				Result:    model.ProbeFailure,
				HasRun:    true,
				Stale:     true,
				Message:   "liveness probe failed",
				CountedAt: modeltest.Noon().Add(-31 * time.Second),
			},
		},
		"undecided": {
			model.Liveness, &model.ProbeRecord{Result: model.ProbeUnknown},
			Verdict{Result: model.ProbeUnknown, HasRun: true},
		},
	} {
		w := web(t, probed).Sandbox("s0", 0, model.SandboxReady)
		rec := w.Container("s0", "app", 0, model.Running)
		if c.record != nil {
			w.Memory.Probes = map[string]map[model.ProbeType]model.ProbeRecord{rec.ID: {c.kind: *c.record}}
		}
		ref, _ := podspec.FindContainer(w.Desired.Pod, "app")
		if diff := cmp.Diff(c.want, podOf(w).Verdict(ref.Container, rec, c.kind)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
