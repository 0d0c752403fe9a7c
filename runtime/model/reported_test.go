package model_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
)

// TestReportedProbes checks which probes have succeeded by a status.
func TestReportedProbes(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		status             v1.ContainerStatus
		startup, readiness model.ProbeResult
	}{
		"nothing":   {},
		"starting":  {status: v1.ContainerStatus{Started: new(bool)}},
		"not ready": {status: v1.ContainerStatus{Started: &yes}, startup: model.ProbeSuccess},
		"ready": {
			status: v1.ContainerStatus{Started: &yes, Ready: true}, startup: model.ProbeSuccess, readiness: model.ProbeSuccess,
		},
	} {
		got := model.ReportedProbes(&c.status)
		if got[model.Startup].Result != c.startup || got[model.Readiness].Result != c.readiness ||
			got[model.Startup].OnHold != (c.startup != "") || got[model.Liveness].Result != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
