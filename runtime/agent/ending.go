package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/agent/shutdown"
)

// ending stops all pods.
type ending struct {
	*loopState

	// order is the shutdown that is under way; nil as a rule.
	order *shutdown.Shutdown
	// told are the pods that were told to stop.
	told []shutdown.Stop
	// done is closed when all pods have stopped, or their time is over.
	done   chan struct{}
	closed bool
}

// StopPods stops all pods within some time, those with the lowest priority first, and returns when
// they have stopped or the time is over. No pass begins for them until ResumePods, or the next agent.
func (a *Agent) StopPods(ctx context.Context, within time.Duration) error {
	done, err := ask(ctx, a.inbox, func() <-chan struct{} { return a.ending.begin(within) })
	if err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ResumePods starts again what StopPods has stopped: the machine does not shut down after all.
func (a *Agent) ResumePods(ctx context.Context) {
	a.inbox.post(ctx, a.ending.callOff)
}

// callOff lets pods start again.
func (e *ending) callOff() {
	if e.order != nil {
		e.log.Info("the shutdown was called off; pods start again")
		e.order = nil
		e.workers.Resume(e.now())
	}
}

// begin lets no pass begin any more, and stops the pods, if that has not begun yet.
func (e *ending) begin(within time.Duration) <-chan struct{} {
	if e.order != nil {
		return e.done
	}
	pods := e.pods()
	e.log.Info("stopping all pods", "pods", len(pods), "within", within.String())
	e.workers.Hold()
	e.order, e.done, e.closed = shutdown.New(e.now(), within, pods), make(chan struct{}), false
	e.told = nil
	return e.done
}

// pods are those that are kept, and those that are being deleted: they run until they are gone.
func (e *ending) pods() []*v1.Pod {
	all := maps.Clone(e.keeper.kept)
	for uid, d := range e.keeper.leaving {
		if all[uid] == nil && e.workers.Ending(uid) {
			all[uid] = d
		}
	}
	pods := make([]*v1.Pod, 0, len(all))
	for _, uid := range slices.Sorted(maps.Keys(all)) {
		pods = append(pods, all[uid].Pod)
	}
	return pods
}

// stopDue stops the pods whose turn it is, and returns when the next turn comes; zero while nothing
// is to stop.
func (e *ending) stopDue() time.Time {
	if e.order == nil || e.closed {
		return time.Time{}
	}
	now := e.now()
	stop, wake, done := e.order.Next(now, func(uid types.UID) bool { return !e.workers.Stopped(uid) })
	// A pod that somebody has deleted beside the agent may come back with another worker.
	e.told = append(e.told, stop...)
	for _, s := range e.told {
		e.workers.Stop(now, s.UID, s.Grace)
	}
	if done {
		e.closed = true
		close(e.done)
	}
	return wake
}

// loopUntilStopped stops all pods after the agent was told to end.
func (a *Agent) loopUntilStopped(ctx context.Context) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := a.ending.begin(a.settings.StopPods)
	go func() {
		<-done
		stop()
	}()
	a.loop(ctx)
}
