package agent

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/podstatus"
)

// finding is what others may wait for of a pod.
type finding struct {
	phase v1.PodPhase
	ready bool
}

// found is how a pass has found its pod; zero if that is not known.
func (p *passed) found(now time.Time) (f finding) {
	if p.outcome == nil || p.outcome.Observed == nil || p.pod() == nil {
		return f
	}
	status := podstatus.Of(podstatus.New(&podstatus.Input{Desired: p.pod(), Observed: *p.outcome.Observed, Now: now}))
	f.phase = status.Phase
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == v1.PodReady {
			f.ready = c.Status == v1.ConditionTrue
		}
	}
	return f
}

// hasChanged reports whether a pass has, or may have, changed something of its pod.
func (p *passed) hasChanged() bool {
	return p.err != nil || p.pass.Kind != podworkers.Sync || p.result().Pending
}

// found notes how a pass has found its pod, and tells whoever waits for a change of it.
func (a *Agent) found(p *passed) finding {
	if a.settings.Changed == nil {
		return finding{}
	}
	now := p.found(a.settings.Now())
	if p.hasChanged() || now != a.last[p.pass.Ref.UID].found {
		a.settings.Changed(p.pass.Ref.UID)
	}
	return now
}
