package eviction

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/admission"
)

// Amount is the available amount and the capacity of a resource.
type Amount struct{ Available, Capacity int64 }

// available returns the available amount as a quantity for messages.
func (a Amount) available(s Signal) *resource.Quantity {
	if what := s.resource(); what == inodes || what == pids {
		return resource.NewQuantity(a.Available, resource.DecimalSI)
	}
	return resource.NewQuantity(a.Available, resource.BinarySI)
}

// Measurement is the result of one measurement of the machine.
type Measurement struct {
	// Left holds the amounts by signal, one for each relevant file system. Values that could not be measured are
	// missing.
	Left map[Signal][]Amount
	// Partial is set if some values could not be measured.
	Partial bool
	// OwnImageFs is set if images have a separate file system.
	OwnImageFs bool
}

// counts reports which parts of a pod are on the file system of a signal. If images have a separate file system,
// writable layers are on it, and logs and volumes on that of the node (kubelet: buildSignalToRankFunc).
func (l *Measurement) counts(s Signal) (layers, files bool) {
	images := s == ImageFsAvailable || s == ImageFsInodesFree
	return images || !l.OwnImageFs, !images || !l.OwnImageFs
}

// below returns the first amount that is below a threshold plus an extra, if any.
func (l *Measurement) below(t *Threshold, extra admission.Share) (Amount, bool) {
	for _, a := range l.Left[t.Signal] {
		wanted := t.Of(a.Capacity)
		wanted.Add(extra.Of(a.Capacity))
		if wanted.CmpInt64(a.Available) > 0 {
			return a, true
		}
	}
	return Amount{}, false
}

// lack returns the amount that is below a threshold, or otherwise the one whose minimum reclaim is not available yet.
func (l *Measurement) lack(t *Threshold) Amount {
	if a, below := l.below(t, admission.Share{}); below {
		return a
	}
	a, _ := l.below(t, t.MinReclaim)
	return a
}

// tracker follows thresholds over time.
type tracker struct {
	thresholds []Threshold
	states     []thresholdState
}

// thresholdState is the state of one threshold.
type thresholdState struct {
	// since is when the threshold was first met, without an interruption since then. It is zero if it is not met.
	since time.Time
	// due reports that pods are evicted for the threshold.
	due bool
}

func newTracker(all []Threshold) *tracker {
	return &tracker{thresholds: all, states: make([]thresholdState, len(all))}
}

// update returns the thresholds that are met, and those of them that have been met for their grace period. The first of
// these is acted on. A threshold that was acted on stays met until its minimum reclaim is available (kubelet:
// thresholdsMet, thresholdsFirstObservedAt, thresholdsMetGracePeriod, byEvictionPriority). In a partial measurement, a
// threshold whose value is missing stays as it was, but no pod is evicted for it.
func (t *tracker) update(now time.Time, look *Measurement) (met, due []Threshold) {
	for i := range t.thresholds {
		one, s, extra := &t.thresholds[i], &t.states[i], admission.Share{}
		if len(look.Left[one.Signal]) == 0 && look.Partial {
			if !s.since.IsZero() {
				met = append(met, *one)
			}
			continue
		}
		if s.due {
			extra = one.MinReclaim
		}
		if _, below := look.below(one, extra); !below {
			*s = thresholdState{}
			continue
		}
		if s.since.IsZero() || s.since.After(now) {
			s.since = now
		}
		s.due = now.Sub(s.since) >= one.Grace
		met = append(met, *one)
		if s.due {
			due = append(due, *one)
		}
	}
	return met, due
}

// unresolved returns the thresholds whose minimum reclaim is not available.
func unresolved(due []Threshold, look *Measurement) []Threshold {
	return slices.DeleteFunc(slices.Clone(due), func(t Threshold) bool {
		_, below := look.below(&t, t.MinReclaim)
		return !below
	})
}

// DefaultTransition is how long a condition lasts after its threshold was last met (kubelet:
// EvictionPressureTransitionPeriod).
const DefaultTransition = 5 * time.Minute

// Pressure maps the node's conditions to when they were last observed.
type Pressure map[v1.NodeConditionType]time.Time

// Update records the thresholds that are met now, and returns the conditions of the node, sorted by name. A condition
// lasts for the transition after it was last observed.
func (p Pressure) Update(now time.Time, transition time.Duration, met []Threshold) []v1.NodeConditionType {
	maps.DeleteFunc(p, func(_ v1.NodeConditionType, seen time.Time) bool { return now.Sub(seen) >= transition })
	for i := range met {
		p[met[i].Signal.condition()] = now
	}
	return slices.Sorted(maps.Keys(p))
}
