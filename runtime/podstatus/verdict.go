package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
)

// Verdict is the known result of one probe of one running container.
type Verdict struct {
	Result model.ProbeResult
	// HasRun reports whether the probe has run at all.
	HasRun bool
	// Stale reports whether a failure is too old to act on.
	Stale bool
	// Message describes the failure, and CountedAt is its time.
	Message   string
	CountedAt time.Time
}

// Verdict returns the result of a probe. It is unknown for a container without that probe and for a probe that never
// ran.
func (p *Pod) Verdict(spec *v1.Container, c *model.Container, t model.ProbeType) Verdict {
	probe := model.ProbeOf(spec, t)
	record, ok := p.Observed.Memory.Probes[c.ID][t]
	if probe == nil || !ok {
		return Verdict{Result: model.ProbeUnknown}
	}
	v := Verdict{Result: record.Result, HasRun: true, CountedAt: record.CountedAt}
	if record.Result == model.ProbeFailure {
		v.Stale = record.Stale(probe, p.Now, p.probedSince)
		v.Message = failureText(t, record)
	}
	return v
}

func failureText(t model.ProbeType, record model.ProbeRecord) string {
	text := string(t) + " probe failed"
	if record.Message != "" {
		text += ": " + record.Message
	}
	return text
}
