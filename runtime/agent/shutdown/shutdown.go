// Package shutdown decides in which order the pods of a machine end, and how long each may take.
//
// In: the pods with their priorities, the time that there is, and which pods still run. Out: the
// pods to stop now. It is a value like the kubelet's node shutdown manager: it has no clock and no
// goroutine. Of podctl it may import podspec only.
package shutdown

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
)

// Stop is a pod to stop, and how many seconds its containers have for it.
type Stop struct {
	UID   types.UID
	Grace int64
}

// Shutdown ends pods, those with the lowest priority first. Pods of one priority end together.
type Shutdown struct {
	turns [][]*v1.Pod
	// end is when the last turn is over, until when this one is.
	end, until time.Time
	// current are the pods of this turn.
	current []*v1.Pod
}

// New begins to end pods within some time.
func New(now time.Time, within time.Duration, pods []*v1.Pod) *Shutdown {
	sorted := slices.SortedFunc(slices.Values(pods), func(a, b *v1.Pod) int { return int(podspec.Priority(a)) - int(podspec.Priority(b)) })
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

// Next are the pods to stop now. A turn is over when none of its pods runs, or when its time is over:
// an equal share of what is left for this turn and those after it. Wake is when to ask again if no
// pod ends before; done reports that all turns are over.
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
