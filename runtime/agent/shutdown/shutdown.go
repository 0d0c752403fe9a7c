// Package shutdown decides in which order the pods of a machine end, and how long each may take.
//
// In: the pods with their priorities, the time that there is, and which pods still run. Out: the
// pods to stop now. It is a value like the kubelet's node shutdown manager: it has no clock and no
// goroutine. It may import nothing of podctl.
package shutdown

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
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
	sorted := slices.SortedFunc(slices.Values(pods), func(a, b *v1.Pod) int { return int(Priority(a)) - int(Priority(b)) })
	s := &Shutdown{end: now.Add(within), until: now}
	for i, pod := range sorted {
		if i == 0 || Priority(pod) != Priority(sorted[i-1]) {
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

// The values of the priority classes that every cluster has.
var systemPriorities = map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

// Priority is the priority of a pod: its number, or that of its class if it is one that every
// cluster has; else 0 (kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption).
func Priority(pod *v1.Pod) int32 {
	return ptr.Deref(pod.Spec.Priority, systemPriorities[pod.Spec.PriorityClassName])
}
