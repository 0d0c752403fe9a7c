package eviction

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	// OwnImageFs is set if images have a separate file system.
	OwnImageFs bool
}

// counts reports which parts of a pod are on the file system of a signal. If images have a separate file system,
// writable layers are on it, and logs and volumes on that of the node (kubelet: buildSignalToRankFunc).
func (l *Measurement) counts(s Signal) (layers, files bool) {
	images := s == ImageFsAvailable || s == ImageFsInodesFree
	return images || !l.OwnImageFs, !images || !l.OwnImageFs
}

// below returns the first amount that is below a threshold, if any.
func (l *Measurement) below(t *Threshold) (Amount, bool) {
	for _, a := range l.Left[t.Signal] {
		if t.of(a.Capacity).CmpInt64(a.Available) > 0 {
			return a, true
		}
	}
	return Amount{}, false
}

// met returns the thresholds that are met. The first one is acted on (kubelet: thresholdsMet, byEvictionPriority).
func met(thresholds []Threshold, look *Measurement) []Threshold {
	return slices.DeleteFunc(slices.Clone(thresholds), func(t Threshold) bool {
		_, below := look.below(&t)
		return !below
	})
}

// transition is how long a condition lasts after its threshold was last met (kubelet:
// EvictionPressureTransitionPeriod).
const transition = 5 * time.Minute

// Pressure maps the node's conditions to when they were last observed.
type Pressure map[v1.NodeConditionType]time.Time

// Update records the thresholds that are met now, and returns the conditions of the node, sorted by name.
func (p Pressure) Update(now time.Time, met []Threshold) []v1.NodeConditionType {
	for i := range met {
		p[met[i].Signal.condition()] = now
	}
	maps.DeleteFunc(p, func(_ v1.NodeConditionType, seen time.Time) bool { return now.Sub(seen) >= transition })
	return slices.Sorted(maps.Keys(p))
}
