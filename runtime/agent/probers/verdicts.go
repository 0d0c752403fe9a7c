package probers

import (
	"cmp"
	"slices"
	"time"

	"github.com/podctl/podctl/runtime/model"
)

// Verdict is what is known of one probe.
type Verdict struct {
	Pod         model.PodRef
	Container   string
	ContainerID string
	Type        model.ProbeType
	// Record has the verdict, whether it is decided, and what the last answer said.
	Record model.ProbeRecord
	// Since is from when on the verdict is what it is, AskedAt when the probe was asked last;
	// zero if it was not.
	Since, AskedAt time.Time
	// Asking reports whether an answer is under way, Due is when the next one is asked for: zero
	// while the probe waits for another or is decided.
	Asking bool
	Due    time.Time
}

// Verdicts lists all probes by pod, container and type.
func (s *Set) Verdicts() []Verdict {
	var all []Verdict
	for _, p := range s.pods {
		for name, c := range p.containers {
			for t, w := range c.workers {
				v := Verdict{
					Pod: p.ref, Container: name, ContainerID: c.id, Type: t, Record: w.record,
					Since: w.since, AskedAt: w.asked, Asking: s.asking[key{c.id, t}],
				}
				if s.asks(c, t) {
					v.Due = w.due
				}
				all = append(all, v)
			}
		}
	}
	slices.SortFunc(all, func(a, b Verdict) int {
		return cmp.Or(a.Pod.Compare(b.Pod), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Type, b.Type))
	})
	return all
}
