package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/model"
)

// evictor implements eviction.Pods: it evicts pods by passes of their workers.
type evictor struct {
	*loopState

	// results receives the result of each eviction.
	results map[types.UID]chan error
}

// evictionLimit is how long Evict waits for the end of an evicted pod after its grace period (kubelet:
// podCleanupTimeout).
const evictionLimit = 30 * time.Second

var errTooLong = errors.New("the pod has not ended in time")

// Active returns the pods that were admitted and have not ended, also those that are being deleted (kubelet:
// GetActivePods), without those that an eviction could not end sooner.
func (e *evictor) Active(ctx context.Context) []*v1.Pod {
	pods, _ := call(ctx, e.inbox, func() []*v1.Pod {
		var active []*v1.Pod
		for _, uid := range slices.Sorted(maps.Keys(e.reconciler.stored)) {
			if e.workers.Evictable(uid) && !e.isIdle(uid) && e.results[uid] == nil {
				active = append(active, e.reconciler.stored[uid].Desired.Pod)
			}
		}
		return active
	})
	return pods
}

// isIdle reports whether a pod uses no resources any more, as far as is known (see idle).
func (s *loopState) isIdle(uid types.UID) bool {
	if last, had := s.last[uid]; had {
		return last.idle
	}
	return s.reconciler.stored[uid].Idle
}

// Evict ends a pod, and returns when it has ended. It is safe for concurrent use.
func (e *evictor) Evict(ctx context.Context, uid types.UID, why *model.Eviction) error {
	ended, err := call(ctx, e.inbox, func() <-chan error { return e.begin(e.now(), uid, why) })
	switch {
	case err != nil:
		return err
	case ended == nil:
		return eviction.NotEvictedError{}
	}
	late := time.NewTimer(evictionLimit + time.Duration(why.GracePeriodSeconds)*time.Second)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return errTooLong
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin begins to evict a pod. The channel receives the result. It is nil if the pod is not evicted.
func (e *evictor) begin(now time.Time, uid types.UID, why *model.Eviction) <-chan error {
	ending := e.workers.Ending(uid)
	if e.results[uid] != nil || !e.workers.Evict(now, uid, why) {
		return nil
	}
	if ending {
		e.report(e.workers.Ref(uid), why)
	}
	ended := make(chan error, 1)
	e.results[uid] = ended
	return ended
}

// Pressure sets the conditions of the node. It is safe for concurrent use.
func (e *evictor) Pressure(conditions []v1.NodeConditionType) {
	e.facts.pressures.Store(new(append([]v1.NodeConditionType{}, conditions...)))
	e.notifyFacts()
}

// handlePass handles the end of a pass that may have evicted or deleted a pod.
func (e *evictor) handlePass(p *passResult) {
	if p.superseded() {
		e.forget(p.pass.Ref.UID)
	}
	if p.pass.Kind == podworkers.Sync {
		return
	}
	if why := p.pass.Eviction; why != nil && !why.Shutdown && p.evicts() {
		e.report(p.pass.Ref, why)
	}
	if ended := e.results[p.pass.Ref.UID]; ended != nil && !p.stopsEvicted() && !p.isCut() {
		delete(e.results, p.pass.Ref.UID)
		ended <- p.failure()
	}
}

// report counts and logs an eviction.
func (e *evictor) report(pod model.PodRef, why *model.Eviction) {
	e.metrics.Evicted(why)
	if why.Preempted {
		e.log.Warn("pod preempted", "pod", pod.String(), "resource", why.Signal, "message", why.Message)
		return
	}
	e.log.Warn("pod evicted", "pod", pod.String(), "signal", why.Signal, "message", why.Message)
}

// preempt ends pods for a critical pod, which gets another pass once they have ended. A pod that is being deleted keeps
// its grace period. A pod that cannot be evicted now is tried again in that pass (kubelet: evictPodsToFreeRequests).
func (e *evictor) preempt(now time.Time, p *model.Preemption) {
	for _, pod := range p.Pods {
		if !e.workers.Ending(pod.UID) {
			e.begin(now, pod.UID, p.Preempt(now))
		}
	}
}

// forget ends the wait for an eviction that does not take place.
func (e *evictor) forget(uid types.UID) {
	if ended := e.results[uid]; ended != nil {
		delete(e.results, uid)
		ended <- eviction.NotEvictedError{}
	}
}

// evicts reports whether a pass has evicted a pod that was not evicted before.
func (p *passResult) evicts() bool {
	made := p.planned()
	return made != nil && made.Eviction == p.pass.Eviction
}

// isCut reports whether a pass was cut short. Another one follows.
func (p *passResult) isCut() bool { return p.interrupted && p.failure() != nil }

// stopsEvicted reports whether a pass has stopped an evicted pod. Another pass then removes it.
func (p *passResult) stopsEvicted() bool {
	made := p.planned()
	return made != nil && made.Eviction != nil && made.KillPod && p.failure() == nil
}

// idle reports whether a pod uses no resources any more: it has finished, was not admitted, or was evicted. A preempted
// pod uses them until it has ended.
func (p *passResult) idle(before bool) bool {
	made := p.planned()
	if made == nil || p.outcome.Input == nil {
		return before
	}
	evicted := made.Eviction != nil && (!made.Eviction.Preempted || p.failure() == nil && !made.KillPod)
	return evicted || p.outcome.Input.Observed.Memory.Completion != nil || made.Rejection != nil
}

// pressure returns the names of the node's conditions.
func (e *evictor) pressure() []string {
	var names []string
	for _, c := range e.NodeFacts().Pressures {
		names = append(names, fmt.Sprint(c))
	}
	return names
}
