package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/agent/probers"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

// lateProber answers when the channel is closed.
type lateProber struct {
	Prober

	answers chan struct{}
}

// RunOne runs a probe.
func (p lateProber) RunOne(context.Context, *v1.Probe, probe.Target, *redaction.Redactor) probe.Result {
	<-p.answers
	return probe.Result{Verdict: probe.Success}
}

// RecordReports does nothing.
func (lateProber) RecordReports(context.Context, time.Time, model.PodRef, []probe.Report) error {
	return nil
}

// TestLateProbe checks that a probe counts, but not if it ends when its pod is gone: its metrics would stay forever.
func TestLateProbe(t *testing.T) {
	for _, gone := range []bool{false, true} {
		l := newStill(t)
		prober := lateProber{answers: make(chan struct{})}
		l.agent.world.Prober, l.agent.world.Lister = prober, asApplied{}
		d := l.manifest("one", "a", "a1", 1)
		d.Pod.Spec.Containers[0].ReadinessProbe = &v1.Probe{PeriodSeconds: 1}
		b := l.agent.probes
		seen := probers.Observation{Desired: d, Running: []probers.Running{{Name: d.Pod.Spec.Containers[0].Name, ID: "1", StartedAt: b.now()}}}
		b.pods[d.Pod.UID] = probedPod{seen: seen}
		b.set.Sync(b.now(), seen)
		b.startDue(t.Context())
		if gone {
			b.forget(d.Pod.UID)
		}
		close(prober.answers)
		(<-l.agent.inbox)()
		l.agent.world.Client.RuntimeServiceClient = silent{}
		go func() { (<-l.agent.inbox)() }() // The metrics of pods list them.
		w := httptest.NewRecorder()
		l.agent.Metrics().Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
		if counted := strings.Contains(w.Body.String(), `pod="a"`); counted == gone {
			t.Errorf("gone %t, but counted %t", gone, counted)
		}
	}
}
