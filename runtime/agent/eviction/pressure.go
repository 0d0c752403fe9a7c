package eviction

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount is how much there is of something, and how much of it is left.
type Amount struct{ Available, Capacity int64 }

// available is what is left, as messages have it.
func (a Amount) available(s Signal) *resource.Quantity {
	if what := s.resource(); what == inodes || what == pids {
		return resource.NewQuantity(a.Available, resource.DecimalSI)
	}
	return resource.NewQuantity(a.Available, resource.BinarySI)
}

// Look is what the machine has at one time.
type Look struct {
	// Left is by signal, of each file system that counts; what could not be found out is missing.
	Left map[Signal][]Amount
	// OwnImageFs is set where images have a file system of their own.
	OwnImageFs bool
}

// counts says what of a pod lies on the file system of a signal: where images have one of their own,
// writable layers lie there, and logs and volumes on that of the node (kubelet: buildSignalToRankFunc).
func (l *Look) counts(s Signal) (layers, files bool) {
	images := s == ImageFsAvailable || s == ImageFsInodesFree
	return images || !l.OwnImageFs, !images || !l.OwnImageFs
}

// below is the first amount that is below a threshold; nothing for none.
func (l *Look) below(t *Threshold) (Amount, bool) {
	for _, a := range l.Left[t.Signal] {
		if t.of(a.Capacity).CmpInt64(a.Available) > 0 {
			return a, true
		}
	}
	return Amount{}, false
}

// met are the thresholds that are met, the one to act on first (kubelet: thresholdsMet,
// byEvictionPriority).
func met(thresholds []Threshold, look *Look) []Threshold {
	return slices.DeleteFunc(slices.Clone(thresholds), func(t Threshold) bool {
		_, below := look.below(&t)
		return !below
	})
}

// transition is how long a condition lasts after its threshold was met last (kubelet:
// EvictionPressureTransitionPeriod).
const transition = 5 * time.Minute

// Pressure is which conditions the node has.
type Pressure map[v1.NodeConditionType]time.Time

// See takes the thresholds that are met now, and returns the conditions of the node in the order of
// their names.
func (p Pressure) See(now time.Time, met []Threshold) []v1.NodeConditionType {
	for i := range met {
		p[met[i].Signal.condition()] = now
	}
	maps.DeleteFunc(p, func(_ v1.NodeConditionType, seen time.Time) bool { return now.Sub(seen) >= transition })
	return slices.Sorted(maps.Keys(p))
}
