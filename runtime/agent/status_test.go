package agent

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/agent/probers"
	"github.com/podctl/podctl/runtime/model"
)

// TestStatusHasVerdicts: the status of a pod has what its probes came to, and since when.
func TestStatusHasVerdicts(t *testing.T) {
	l := newLife(t, 0)
	d := l.manifest("one", "a", "a1", 1)
	d.Pod.Spec.Containers[0].ReadinessProbe = &v1.Probe{PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 1}
	l.wants["one"]["a"] = d
	l.tell("one")
	counted := l.now.Add(-time.Minute)
	record := model.ProbeRecord{Result: model.ProbeSuccess, Last: model.ProbeSuccess, Run: 1, CountedAt: counted, Message: "it is ready"}
	l.agent.probes.Sync(l.now, probers.Seen{Desired: d, Running: []probers.Running{{
		Name: d.Pod.Spec.Containers[0].Name, ID: "id", StartedAt: counted, Records: map[model.ProbeType]model.ProbeRecord{model.Readiness: record},
	}}})
	pods := l.agent.status().Pods
	if len(pods) != 1 || len(pods[0].Probes) != 1 {
		t.Fatalf("pods: %+v", pods)
	}
	p := pods[0].Probes[0]
	if p.ContainerID != "id" || p.Type != model.Readiness || p.Result != model.ProbeSuccess || !p.Since.Equal(counted) || !p.AskedAt.Equal(counted) || p.Message != record.Message {
		t.Errorf("the verdict is %+v", p)
	}
}
