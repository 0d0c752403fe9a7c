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

// ProbeTypes lists the three probes in order of importance: no other probe runs before the startup probe has passed.
func ProbeTypes() []ProbeType { return []ProbeType{Startup, Readiness, Liveness} }

// Title returns the type with a capital letter: Liveness.
func (t ProbeType) Title() string { return strings.ToUpper(string(t[:1])) + string(t[1:]) }

// ProbeOf returns the probe of that type, or nil if the container has none.
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

// ProbeResult is a verdict of one run of a probe, or folded over several runs.
type ProbeResult string

// The verdicts. ProbeUnknown is the startup probe's result before it has decided, and the result of a run that could
// not be judged.
const (
	ProbeSuccess ProbeResult = "Success"
	ProbeFailure ProbeResult = "Failure"
	ProbeUnknown ProbeResult = "Unknown"
)

// ProbeRecord is the record of one probe of one container ID.
type ProbeRecord struct {
	// Result is the folded verdict, on which decisions are based. It changes only when Run reaches the threshold.
	Result ProbeResult `json:"result"`
	// Last is the verdict of the last counted run, and Run how many counted runs in a row had it.
	Last ProbeResult `json:"last,omitempty"`
	Run  int32       `json:"run,omitempty"`
	// CountedAt is when the last counted run was made. Zero means that the time is unknown; the record then counts as
	// fresh.
	CountedAt time.Time `json:"countedAt,omitzero"`
	// OnHold reports whether the probe no longer runs for this container ID, because its verdict is final (kubelet:
	// worker.onHold).
	OnHold bool `json:"onHold,omitempty"`
	// Message is the message of the last run, for display.
	Message string `json:"message,omitempty"`
}

// InitialProbe returns the record of a probe that has not run: readiness starts as failed, liveness as passed and
// startup as unknown (kubelet: newWorker).
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

// ReportedProbes returns the records of the probes that have succeeded by a status. Their times are unknown.
func ReportedProbes(s *v1.ContainerStatus) map[ProbeType]ProbeRecord {
	records := map[ProbeType]ProbeRecord{}
	if s.Started != nil && *s.Started {
		records[Startup] = ProbeRecord{Result: ProbeSuccess, OnHold: true}
	}
	if s.Ready {
		records[Readiness] = ProbeRecord{Result: ProbeSuccess}
	}
	return records
}

// Fold counts one run of a probe. It discards ProbeUnknown, as the kubelet discards a probe that could not run. The
// folded result changes when as many runs in a row agreed as the probe's threshold requires (kubelet: worker.doProbe).
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

// Reopened returns a record that can be probed again if its failure is too old to act on. The next run confirms the
// failure or cancels it. A kubelet acts at once and does not need this. See Stale for since.
func (r ProbeRecord) Reopened(p *v1.Probe, now, since time.Time) ProbeRecord {
	if r.OnHold && r.Result == ProbeFailure && r.Stale(p, now, since) {
		r.OnHold, r.Run = false, p.FailureThreshold-1
	}
	return r
}

// Counts reports whether a run at that time may count towards a threshold: only a whole period after the last counted
// one, so that three calls of podctl within a second restart nothing.
func (r ProbeRecord) Counts(p *v1.Probe, at time.Time) bool {
	if r.CountedAt.IsZero() || r.Last == "" {
		return true
	}
	since := at.Sub(r.CountedAt)
	return since < 0 || since >= Seconds(p.PeriodSeconds)
}

// Stale reports whether a recorded failure is too old to act on: no process has probed for longer than the probe itself
// would have needed to fail. since is the start of the caller's uninterrupted probing; zero if it does not probe.
// Failures after since are never stale, however slow the machine is.
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

// Seconds converts the seconds of a manifest to a duration. A manifest may contain more than a duration holds, so the
// result is at most 68 years.
func Seconds[N int32 | int64](n N) time.Duration {
	return time.Duration(min(int64(n), math.MaxInt32)) * time.Second
}
