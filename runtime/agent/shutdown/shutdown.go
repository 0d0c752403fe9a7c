// Package shutdown decides in which order the pods of a machine end, and how long each may take.
//
// Its inputs are the pods with their priorities, the available time, and the pods that still run. It returns the pods
// to stop now. It is a value that follows the kubelet's node shutdown manager: it has no clock and no goroutine. It may
// import only podspec from podctl.
package shutdown

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
)

// Stop is a pod to stop, and the time in seconds that its containers have.
type Stop struct {
	UID   types.UID
	Grace int64
}

// Shutdown ends pods, those with the lowest priority first. Pods of one priority end together.
type Shutdown struct {
	turns [][]*v1.Pod
	// end is the end of the last turn. until is the end of the current turn.
	end, until time.Time
	// current are the pods of the current turn.
	current []*v1.Pod
}

// New starts a shutdown with a time limit.
func New(now time.Time, within time.Duration, pods []*v1.Pod) *Shutdown {
	sorted := slices.SortedFunc(slices.Values(pods), func(a, b *v1.Pod) int {
		return int(podspec.Priority(a)) - int(podspec.Priority(b))
	})
	s := &Shutdown{end: now.Add(within), until: now}
	for i, pod := range sorted {
		if i == 0 || podspec.Priority(pod) != podspec.Priority(sorted[i-1]) {
			s.turns = append(s.turns, nil)
		}
		last := len(s.turns) - 1
		s.turns[last] = append(s.turns[last], pod)
	}
	return s
}

// Next returns the pods to stop now. A turn ends when none of its pods runs, or at its time limit: an equal share of
// the remaining time for this turn and those after it. wake is the time of the next call if no pod ends before. done
// reports that all turns are over.
func (s *Shutdown) Next(now time.Time, runs func(types.UID) bool) (stop []Stop, wake time.Time, done bool) {
	for {
		running := slices.ContainsFunc(s.current, func(p *v1.Pod) bool { return runs(p.UID) })
		switch {
		case running && now.Before(s.until):
			return stop, s.until, false
		case len(s.turns) == 0:
			return stop, time.Time{}, true
		}
		share := max(s.end.Sub(now)/time.Duration(len(s.turns)), time.Second)
		s.current, s.turns, s.until = s.turns[0], s.turns[1:], now.Add(share)
		for _, pod := range s.current {
			grace := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
			stop = append(stop, Stop{UID: pod.UID, Grace: max(min(grace, int64(share/time.Second)), 1)})
		}
	}
}
