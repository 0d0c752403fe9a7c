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

	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/model"
)

// evicting implements eviction.Pods: it evicts pods by passes of their workers.
type evicting struct {
	*loopState

	// waiting receives the result of each eviction.
	waiting map[types.UID]chan error
}

// evictionLimit is how long Evict waits for the end of an evicted pod (kubelet: podCleanupTimeout).
const evictionLimit = 30 * time.Second

var (
	errNotEvicted = errors.New("the pod is being deleted, or all pods are being stopped")
	errTooLong    = errors.New("the pod has not ended in time")
)

// Active returns the pods that were admitted and have not ended (kubelet: GetActivePods).
func (e *evicting) Active(ctx context.Context) []*v1.Pod {
	pods, _ := ask(ctx, e.inbox, func() []*v1.Pod {
		var active []*v1.Pod
		for _, uid := range slices.Sorted(maps.Keys(e.keeper.kept)) {
			s, known := e.keeper.stored[uid]
			idle := s.Idle
			if last, had := e.last[uid]; had {
				idle = last.idle
			}
			if known && !idle && !s.Deleting {
				active = append(active, s.Desired.Pod)
			}
		}
		return active
	})
	return pods
}

// Evict ends a pod, and returns when it has ended.
func (e *evicting) Evict(ctx context.Context, uid types.UID, why *model.Eviction) error {
	ended := make(chan error, 1)
	begun, err := ask(ctx, e.inbox, func() bool {
		if !e.workers.Evict(e.now(), uid, why) {
			return false
		}
		e.waiting[uid] = ended
		return true
	})
	switch {
	case err != nil:
		return err
	case !begun:
		return errNotEvicted
	}
	late := time.NewTimer(evictionLimit)
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

// Pressure sets the conditions of the node.
func (e *evicting) Pressure(ctx context.Context, conditions []v1.NodeConditionType) {
	e.inbox.post(ctx, func() { e.conditions = conditions })
}

// passed handles the end of a pass that may have evicted or deleted a pod.
func (e *evicting) passed(p *passed) {
	if p.pass.Kind == podworkers.Sync {
		return
	}
	if why := p.pass.Eviction; why != nil && p.evicts() {
		e.metrics.Evicted(why.Signal)
		e.log.Warn("pod evicted", "pod", p.pass.Ref.String(), "signal", why.Signal, "message", why.Message)
	}
	if ended := e.waiting[p.pass.Ref.UID]; ended != nil {
		delete(e.waiting, p.pass.Ref.UID)
		ended <- p.failure()
	}
}

// evicts reports whether a pass has evicted a pod that was not evicted before.
func (p *passed) evicts() bool {
	made := p.planned()
	return made != nil && made.Eviction == p.pass.Eviction
}

// idle reports whether a pod uses no resources any more: it has finished, was not admitted, or was evicted.
func (p *passed) idle(before bool) bool {
	if p.planned() == nil || p.outcome.Input == nil {
		return before
	}
	return p.outcome.Input.Observed.Memory.Completion != nil || p.outcome.Plan.Rejection != nil || p.outcome.Plan.Eviction != nil
}

// pressure returns the names of the node's conditions.
func (e *evicting) pressure() []string {
	var names []string
	for _, c := range e.conditions {
		names = append(names, fmt.Sprint(c))
	}
	return names
}
