package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/agent/shutdown"
	"github.com/podctl/podctl/runtime/model"
)

// podStopper stops all pods.
type podStopper struct {
	*loopState

	// shutdown is the shutdown in progress. It is nil if there is none. fails reports that pods of the API server do
	// not run again after it. began has the pods that it began with, and those that were rejected since.
	shutdown *shutdown.Shutdown
	fails    bool
	began    map[types.UID]bool
	// stops holds the stops that were ordered.
	stops []shutdown.Stop
	// done is closed when all pods have stopped or the time limit has passed.
	done   chan struct{}
	closed bool
}

// StopPods stops all pods within a time limit, those with the lowest priority first. It returns when they have stopped
// or the time limit has passed. They get no pass until ResumePods is called or the next agent starts.
func (a *Agent) StopPods(ctx context.Context, settings shutdown.Settings) error {
	done, err := call(ctx, a.inbox, func() <-chan struct{} { return a.stopper.begin(settings) })
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

// ResumePods starts the pods that StopPods has stopped. It is called if the shutdown of the machine is canceled.
func (a *Agent) ResumePods(ctx context.Context) {
	a.inbox.post(ctx, a.stopper.cancel)
}

// cancel lets pods start again.
func (e *podStopper) cancel() {
	if e.shutdown != nil {
		e.log.Info("the shutdown was canceled; the pods start again")
		e.shutdown = nil
		e.noteShutdown()
		e.workers.Resume(e.now())
	}
}

// begin prevents new passes and starts to stop the pods, unless it has already done so.
func (e *podStopper) begin(settings shutdown.Settings) <-chan struct{} {
	if e.shutdown != nil {
		return e.done
	}
	pods := e.pods()
	e.log.Info("stopping all pods", "pods", len(pods), "within", settings.Within.String())
	e.workers.Hold()
	e.shutdown, e.done, e.closed = shutdown.New(e.now(), settings, pods), make(chan struct{}), false
	e.stops, e.fails, e.began = nil, settings.Fail, map[types.UID]bool{}
	for _, pod := range pods {
		e.began[pod.UID] = true
	}
	e.noteShutdown()
	return e.done
}

// pods returns the kept pods and those that are being deleted: they run until they are gone.
func (e *podStopper) pods() []*v1.Pod {
	all := maps.Clone(e.reconciler.kept)
	for uid, d := range e.reconciler.leaving {
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

// stopDue stops the pods whose turn it is, and returns the time of the next turn. It returns zero if nothing is left to
// stop.
func (e *podStopper) stopDue() time.Time {
	if e.shutdown == nil {
		return time.Time{}
	}
	now := e.now()
	e.rejectNew(now)
	if e.closed {
		return time.Time{}
	}
	stop, wake, done := e.shutdown.Next(now, func(uid types.UID) bool { return !e.workers.Stopped(uid) })
	// A pod that was deleted outside the agent may come back with another worker.
	e.stops = append(e.stops, stop...)
	for _, s := range e.stops {
		e.order(now, s)
	}
	if done {
		e.closed = true
		close(e.done)
	}
	return wake
}

// order orders the stop of a pod, unless it has already done so.
func (e *podStopper) order(now time.Time, s shutdown.Stop) {
	e.workers.Stop(now, s.UID, s.Grace, e.failure(now, s))
}

// failure returns why a pod does not run again after the shutdown. It is nil for a pod that does: of another source, as
// static pods of a kubelet do, and for one that has ended.
func (e *podStopper) failure(now time.Time, s shutdown.Stop) *model.Eviction {
	if d := e.reconciler.kept[s.UID]; !e.fails || d == nil || !d.FromCluster() || e.isIdle(s.UID) {
		return nil
	}
	return model.ShutdownEviction(now, s.Grace)
}

// rejectNew rejects the pods that have arrived since the shutdown began.
func (e *podStopper) rejectNew(now time.Time) {
	if !e.fails {
		return
	}
	for uid := range e.reconciler.kept {
		if !e.began[uid] {
			e.began[uid] = true
			e.order(now, shutdown.Stop{UID: uid, Grace: 1})
		}
	}
}

// loopUntilStopped runs the loop until all pods have stopped, after the context of the agent has ended.
func (a *Agent) loopUntilStopped(ctx context.Context) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := a.stopper.begin(shutdown.Settings{Within: a.settings.StopPods})
	go func() {
		<-done
		stop()
	}()
	a.loop(ctx)
}
