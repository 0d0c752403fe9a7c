package probers

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

// records are the probe records of one container.
type records = map[model.ProbeType]model.ProbeRecord

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// lab is a Set with one pod and a clock. The agent has been running for an hour.
type lab struct {
	*Set
	t     *testing.T
	now   time.Time
	seen  Observation
	fails map[model.ProbeType]bool
	last  probe.Report
}

func every(seconds int32) *v1.Probe {
	return &v1.Probe{PeriodSeconds: seconds, SuccessThreshold: 1, FailureThreshold: 3}
}

// with changes a probe.
func with(p *v1.Probe, change func(p *v1.Probe)) *v1.Probe {
	change(p)
	return p
}

func podOf(containers ...v1.Container) *podspec.Desired {
	pod := &v1.Pod{}
	pod.Namespace, pod.Name, pod.UID = "ns", "web", "u"
	pod.Spec.Containers = containers
	return &podspec.Desired{Pod: pod}
}

// newLab returns a lab with a container that starts now.
func newLab(t *testing.T, probes map[model.ProbeType]*v1.Probe) *lab {
	t.Helper()
	c := v1.Container{
		Name:           "a",
		LivenessProbe:  probes[model.Liveness],
		ReadinessProbe: probes[model.Readiness],
		StartupProbe:   probes[model.Startup],
	}
	l := &lab{Set: New(noon.Add(-time.Hour), func() float64 { return 0.5 }), t: t, now: noon, fails: map[model.ProbeType]bool{}}
	l.seen = Observation{Desired: podOf(c), Running: []Running{{Name: "a", ID: "1", Address: "10.0.0.2", StartedAt: noon}}}
	l.Sync(l.now, l.seen)
	return l
}

func one(t *testing.T, kind model.ProbeType, p *v1.Probe) *lab {
	t.Helper()
	return newLab(t, map[model.ProbeType]*v1.Probe{kind: p})
}

func (l *lab) answer(ask DueProbe, verdict probe.Verdict) probe.Report {
	return l.Done(l.now, ask, map[probe.Verdict]probe.Result{
		probe.Success: {Verdict: probe.Success}, probe.Failure: {Verdict: probe.Failure, Output: "no", Message: "no"},
	}[verdict])
}

// tick runs the probes that are due now, and returns their types.
func (l *lab) tick() (ran []model.ProbeType) {
	l.t.Helper()
	asks, _ := l.Next(l.now)
	for _, ask := range asks {
		verdict := probe.Success
		if l.fails[ask.Type] {
			verdict = probe.Failure
		}
		l.last = l.answer(ask, verdict)
		ran = append(ran, ask.Type)
	}
	return ran
}

// ticks runs probes the given number of times, each at the time of the Set's next call.
func (l *lab) ticks(times int) {
	l.t.Helper()
	for range times {
		if len(l.tick()) == 0 {
			l.t.Fatalf("nothing was asked at %s", l.now.Sub(noon))
		}
		l.advance()
	}
}

// advance sets the clock to the time of the Set's next call.
func (l *lab) advance() {
	if _, wake := l.Next(l.now); !wake.IsZero() {
		l.now = wake
	}
}

func (l *lab) record(kind model.ProbeType) model.ProbeRecord {
	l.t.Helper()
	for _, v := range l.Verdicts() {
		if v.Type == kind {
			return v.Record
		}
	}
	l.t.Fatalf("there is no worker for %s", kind)
	return model.ProbeRecord{}
}

func (l *lab) want(kind model.ProbeType, result model.ProbeResult, run int32, when string) {
	l.t.Helper()
	if r := l.record(kind); r.Result != result || r.Run != run {
		l.t.Errorf("%s, %s: %s, %d in a row, not %s, %d", kind, when, r.Result, r.Run, result, run)
	}
}

// restart replaces the container, which ran until now, with one that has another ID.
func (l *lab) restart(id string) {
	l.seen.Running = []Running{{Name: "a", ID: id, Address: "10.0.0.2", StartedAt: l.now}}
	l.Sync(l.now, l.seen)
}
