package statuses

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// observation is the state of the pods of the agent at one time.
type observation struct {
	// shown are the shown pods, if they could be listed.
	shown  []Shown
	listed bool
	// asked are the pods whose status was asked for, and pods those that could be observed.
	asked map[types.UID]bool
	pods  map[types.UID]*v1.Pod
	err   error
}

// soil notes that a pod must be observed again.
func (l *loop) soil(uid types.UID, at time.Time) {
	if len(l.dirty) == 0 || at.Before(l.dirtyAt) {
		l.dirtyAt = at
	}
	l.dirty[uid] = true
}

// observeAt returns when pods are next observed. due is false if no pod needs it, or if an observation is under way.
func (l *loop) observeAt() (at time.Time, due bool) {
	if l.observing || len(l.dirty)+len(l.missed) == 0 {
		return time.Time{}, false
	}
	at = l.missedRetry.until
	if len(l.dirty) > 0 && (len(l.missed) == 0 || l.dirtyAt.Before(at)) {
		at = l.dirtyAt
	}
	for _, earliest := range []time.Time{l.observedAt.Add(observeEvery), l.restUntil} {
		if at.Before(earliest) {
			at = earliest
		}
	}
	return at, true
}

// beginObservation observes all dirty pods, and those that the manager does not know yet. The end of ctx ends the
// observation.
func (l *loop) beginObservation(ctx context.Context, now time.Time) {
	if l.observing {
		return
	}
	asked := l.dirty
	if !l.missedRetry.until.After(now) {
		maps.Copy(asked, l.missed)
	}
	l.observing, l.observedAt, l.dirty = true, now, map[types.UID]bool{}
	before := make(map[types.UID]observed, len(l.pods))
	for uid, e := range l.pods {
		before[uid] = e.observed
	}
	go func() { l.observations <- l.observePods(ctx, asked, before) }()
}

// observePods lists the pods, and then their statuses, so that a status is never older than what Shown reports about
// the pod.
func (m *Manager) observePods(
	ctx context.Context, asked map[types.UID]bool, before map[types.UID]observed,
) observation {
	h := observation{asked: asked, pods: map[types.UID]*v1.Pod{}}
	shown, err := m.Pods.Shown(ctx)
	if err != nil {
		h.err = fmt.Errorf("list the pods of the API server: %w", err)
		return h
	}
	h.shown, h.listed = shown, true
	var list []*podspec.Desired
	for i := range h.shown {
		s := &h.shown[i]
		uid := s.Desired.Pod.UID
		last, known := before[uid]
		changed := last.mayRun != s.MayRun || last.reclaimed != s.Reclaimed ||
			last.generation != s.Desired.Pod.Generation
		if !known || changed {
			asked[uid] = true
		}
		if asked[uid] {
			list = append(list, s.Desired)
		}
	}
	if len(list) == 0 {
		return h
	}
	pods, err := m.Pods.List(ctx, list)
	h.err = err
	for _, p := range pods {
		if p.Status.Phase != "" && p.Status.Phase != v1.PodUnknown {
			h.pods[p.UID] = p
		}
	}
	return h
}

// store stores an observation. Pods that could not be observed are observed again later, without a delay for the
// others.
func (l *loop) store(h observation, now time.Time) {
	l.observing = false
	l.restUntil = now.Add(min(now.Sub(l.observedAt), restMax))
	if failure := l.observeFailures.News(h.err); failure != "" {
		l.Log.Warn("cannot read the status of pods", "error", failure)
	}
	missed := h.asked
	if h.listed {
		missed = l.storeAll(&h, now)
	}
	for uid := range h.asked {
		delete(l.missed, uid)
	}
	maps.Copy(l.missed, missed)
	switch {
	case len(missed) > 0:
		l.missedRetry = l.missedRetry.failed(now, 0, rand.Float64())
	case len(l.missed) == 0:
		l.missedRetry = backoff{}
	}
}

// storeAll stores the statuses of an observation, and returns the shown pods without one.
func (l *loop) storeAll(h *observation, now time.Time) map[types.UID]bool {
	shown, missed := map[types.UID]bool{}, map[types.UID]bool{}
	for i := range h.shown {
		uid := h.shown[i].Desired.Pod.UID
		shown[uid] = true
		switch pod := h.pods[uid]; {
		case pod != nil:
			l.storeOne(&h.shown[i], pod, now)
		case h.asked[uid]:
			missed[uid] = true
		}
	}
	l.forget(shown)
	return missed
}

// storeOne stores the status of one pod.
func (l *loop) storeOne(s *Shown, pod *v1.Pod, now time.Time) {
	p := s.Desired.Pod
	e := l.pods[p.UID]
	if e == nil {
		e = &entry{known: known{pod: model.RefOf(p)}}
		l.pods[p.UID] = e
	}
	next := observed{own: pod.Status, generation: p.Generation, mayRun: s.MayRun, reclaimed: s.Reclaimed}
	e.orphan = false
	if e.version > 0 && e.same(&next) {
		return
	}
	e.observed = next
	e.version++
	e.due(now)
}

func (t *observed) same(other *observed) bool {
	return t.generation == other.generation && t.mayRun == other.mayRun && t.reclaimed == other.reclaimed &&
		equality.Semantic.DeepEqual(&t.own, &other.own)
}

// forget drops the pods that the agent does not show any more. A request in flight ends first.
func (l *loop) forget(shown map[types.UID]bool) {
	for uid, e := range l.pods {
		switch {
		case shown[uid]:
		case e.busy:
			e.orphan = true
		default:
			delete(l.pods, uid)
		}
	}
}
