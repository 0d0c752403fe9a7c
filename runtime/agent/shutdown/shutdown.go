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

// Settings are the limits of a shutdown.
type Settings struct {
	// Within is how long all pods may take to stop.
	Within time.Duration
	// Fail makes it the shutdown of a kubelet: pods of the API server do not run again. Critical is the part of Within
	// for critical pods, and the rest is for all others (kubelet: shutdownGracePeriod,
	// shutdownGracePeriodCriticalPods). Without Fail, each priority has an equal share.
	Fail     bool
	Critical time.Duration
}

// turn are pods that end together. Without a share, the remaining turns divide the time.
type turn struct {
	pods  []*v1.Pod
	share time.Duration
}

// Shutdown ends pods, those with the lowest priority first. Pods of one priority end together.
type Shutdown struct {
	turns []turn
	// end is the end of the last turn. until is the end of the current turn.
	end, until time.Time
	// current are the pods of the current turn.
	current []*v1.Pod
}

// New starts a shutdown.
func New(now time.Time, settings Settings, pods []*v1.Pod) *Shutdown {
	s := &Shutdown{end: now.Add(settings.Within), until: now}
	if settings.Fail {
		s.turns = byClass(settings, pods)
	} else {
		s.turns = byPriority(pods)
	}
	return s
}

// byClass returns the turns of a kubelet: all other pods, then critical ones (kubelet: migrateConfig, groupByPriority).
func byClass(settings Settings, pods []*v1.Pod) (turns []turn) {
	critical := turn{share: max(settings.Critical, time.Second)}
	others := turn{share: max(settings.Within-settings.Critical, time.Second)}
	for _, pod := range pods {
		group := &others
		if podspec.IsCritical(pod) {
			group = &critical
		}
		group.pods = append(group.pods, pod)
	}
	for _, one := range []turn{others, critical} {
		if len(one.pods) > 0 {
			turns = append(turns, one)
		}
	}
	return turns
}

// byPriority returns one turn for each priority.
func byPriority(pods []*v1.Pod) (turns []turn) {
	sorted := slices.SortedFunc(slices.Values(pods), func(a, b *v1.Pod) int {
		return int(podspec.Priority(a)) - int(podspec.Priority(b))
	})
	for i, pod := range sorted {
		if i == 0 || podspec.Priority(pod) != podspec.Priority(sorted[i-1]) {
			turns = append(turns, turn{})
		}
		last := &turns[len(turns)-1]
		last.pods = append(last.pods, pod)
	}
	return turns
}

// Next returns the pods to stop now. A turn ends when none of its pods runs, or at its time limit: its share, or an
// equal part of the remaining time for this turn and those after it. wake is the time of the next call if no pod ends
// before. done reports that all turns are over.
func (s *Shutdown) Next(now time.Time, runs func(types.UID) bool) (stop []Stop, wake time.Time, done bool) {
	for {
		running := slices.ContainsFunc(s.current, func(p *v1.Pod) bool { return runs(p.UID) })
		switch {
		case running && now.Before(s.until):
			return stop, s.until, false
		case len(s.turns) == 0:
			return stop, time.Time{}, true
		}
		share := s.turns[0].share
		if share == 0 {
			share = s.end.Sub(now) / time.Duration(len(s.turns))
		}
		share = max(share, time.Second)
		s.current, s.turns, s.until = s.turns[0].pods, s.turns[1:], now.Add(share)
		for _, pod := range s.current {
			grace := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
			stop = append(stop, Stop{UID: pod.UID, Grace: max(min(grace, int64(share/time.Second)), 1)})
		}
	}
}
