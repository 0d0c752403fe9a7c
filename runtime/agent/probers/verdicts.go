package probers

import (
	"cmp"
	"slices"
	"time"

	"github.com/podctl/podctl/runtime/model"
)

// Verdict is the state of one probe.
type Verdict struct {
	Pod         model.PodRef
	Container   string
	ContainerID string
	Type        model.ProbeType
	// Record has the verdict, whether it is decided, and the last result.
	Record model.ProbeRecord
	// Since is when the verdict was reached. LastRun is when the probe last ran, or zero if it never ran.
	Since, LastRun time.Time
}

// Verdicts returns all probes by pod, container and type.
func (s *Set) Verdicts() []Verdict {
	var all []Verdict
	for _, t := range s.appendTurns(nil) {
		all = append(all, Verdict{
			Pod: t.pod, Container: t.in.spec.Name, ContainerID: t.in.id, Type: t.probe, Record: t.worker.record,
			Since: t.worker.since, LastRun: t.worker.lastRun,
		})
	}
	slices.SortStableFunc(all, func(a, b Verdict) int {
		return cmp.Or(a.Pod.Compare(b.Pod), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Type, b.Type))
	})
	return all
}
