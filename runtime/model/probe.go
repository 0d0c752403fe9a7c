package model

import (
	"math"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// ProbeType is one of the three probes a container can have.
type ProbeType string

// The three probes.
const (
	Liveness  ProbeType = "liveness"
	Readiness ProbeType = "readiness"
	Startup   ProbeType = "startup"
)

// ProbeTypes lists the three probes in the order in which they matter: nothing
// else is asked before the startup probe has passed.
func ProbeTypes() []ProbeType { return []ProbeType{Startup, Readiness, Liveness} }

// Title is the type as it begins a sentence: Liveness.
func (t ProbeType) Title() string { return strings.ToUpper(string(t[:1])) + string(t[1:]) }

// ProbeOf returns the probe of that type, or nil when the container has none.
func ProbeOf(c *v1.Container, t ProbeType) *v1.Probe {
	switch t {
	case Liveness:
		return c.LivenessProbe
	case Readiness:
		return c.ReadinessProbe
	case Startup:
		return c.StartupProbe
	}
	return nil
}

// ProbeResult is a verdict of a probe, of one run or folded over several.
type ProbeResult string

// The verdicts. Unknown is the startup probe's result before it has decided,
// and of a run that could not be judged.
const (
	ProbeSuccess ProbeResult = "Success"
	ProbeFailure ProbeResult = "Failure"
	ProbeUnknown ProbeResult = "Unknown"
)

// ProbeRecord is the memory of one probe of one container id. It dies with the
// container id.
type ProbeRecord struct {
	// Result is the folded verdict, the one decisions are made on. It changes
	// only when Run reaches the threshold.
	Result ProbeResult `json:"result"`
	// Last is the verdict of the last run that was counted, and Run how many
	// counted runs in a row gave it.
	Last ProbeResult `json:"last,omitempty"`
	Run  int32       `json:"run,omitempty"`
	// CountedAt is when the last counted run was made. Zero: the time is not
	// known and the record counts as fresh.
	CountedAt time.Time `json:"countedAt,omitzero"`
	// OnHold reports whether the probe is not asked again for this container id: its
	// verdict is final (kubelet: worker.onHold).
	OnHold bool `json:"onHold,omitempty"`
	// Message is what the last run said, for display.
	Message string `json:"message,omitempty"`
}

// InitialProbe is the record of a probe that has not been run: readiness starts
// as failed, liveness as passed and startup as unknown (kubelet: newWorker).
func InitialProbe(t ProbeType) ProbeRecord {
	switch t {
	case Readiness:
		return ProbeRecord{Result: ProbeFailure}
	case Liveness:
		return ProbeRecord{Result: ProbeSuccess}
	case Startup:
	}
	return ProbeRecord{Result: ProbeUnknown}
}

// Fold counts one run of a probe. A verdict of Unknown is discarded, as the
// kubelet discards a probe that could not be asked. The folded result changes
// when as many runs in a row agreed as the probe's threshold asks for
// (kubelet: worker.doProbe).
func (r ProbeRecord) Fold(t ProbeType, p *v1.Probe, verdict ProbeResult, at time.Time) ProbeRecord {
	if verdict == ProbeUnknown || r.OnHold {
		return r
	}
	if r.Last == verdict {
		r.Run++
	} else {
		r.Last, r.Run = verdict, 1
	}
	r.CountedAt = at
	if r.Run < threshold(p, verdict) {
		return r
	}
	r.Result = verdict
	r.OnHold = t == Startup || (t == Liveness && verdict == ProbeFailure)
	if r.OnHold {
		r.Run = 0
	}
	return r
}

// Reopened is the record of a failure that is too old to act on, made ready to be asked
// again: the next answer confirms it or takes it back. A kubelet acts at once, and has no
// need for it. See Stale for since.
func (r ProbeRecord) Reopened(p *v1.Probe, now, since time.Time) ProbeRecord {
	if r.OnHold && r.Result == ProbeFailure && r.Stale(p, now, since) {
		r.OnHold, r.Run = false, p.FailureThreshold-1
	}
	return r
}

// Counts reports whether a run at that time may count towards a threshold: only a
// whole period after the last one that did, so that calling podctl three times
// in a second restarts nothing.
func (r ProbeRecord) Counts(p *v1.Probe, at time.Time) bool {
	if r.CountedAt.IsZero() || r.Last == "" {
		return true
	}
	since := at.Sub(r.CountedAt)
	return since < 0 || since >= Seconds(p.PeriodSeconds)
}

// Stale reports whether a recorded failure is too old to act on: no process has asked
// for longer than the probe itself would have needed to fail. A process that has asked the
// probe without a break since a time acts on its failures since then, however slow the machine
// is; for others that time is zero.
func (r ProbeRecord) Stale(p *v1.Probe, now, since time.Time) bool {
	if r.CountedAt.IsZero() || !since.IsZero() && !r.CountedAt.Before(since) {
		return false
	}
	age := now.Sub(r.CountedAt)
	return age < 0 || age > Seconds(int64(p.FailureThreshold)*int64(p.PeriodSeconds))
}

func threshold(p *v1.Probe, verdict ProbeResult) int32 {
	if verdict == ProbeFailure {
		return p.FailureThreshold
	}
	return p.SuccessThreshold
}

// Seconds is a number of seconds of a manifest as a duration. A manifest may ask for more
// than a duration holds: 68 years are as good.
func Seconds[N int32 | int64](n N) time.Duration {
	return time.Duration(min(int64(n), math.MaxInt32)) * time.Second
}
