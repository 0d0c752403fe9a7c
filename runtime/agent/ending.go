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

// ending is a shutdown under way.
type ending struct {
	order *shutdown.Shutdown
	// done is closed when all pods have stopped, or their time is over.
	done   chan struct{}
	closed bool
}

// StopPods stops all pods within some time, those with the lowest priority first, and returns when
// they have stopped or the time is over. No pass begins for them until ResumePods, or the next agent.
func (a *Agent) StopPods(ctx context.Context, within time.Duration) error {
	done, err := ask(ctx, a.inbox, func() <-chan struct{} { return a.beginEnding(within) })
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
	a.inbox.post(ctx, func() {
		if a.ending != nil {
			a.settings.Log.Info("the shutdown was called off; pods start again")
			a.ending = nil
			a.workers.Resume(a.settings.Now())
		}
	})
}

// beginEnding lets no pass begin any more, and stops the pods, if that has not begun yet.
func (a *Agent) beginEnding(within time.Duration) <-chan struct{} {
	if a.ending != nil {
		return a.ending.done
	}
	pods := make([]*v1.Pod, 0, len(a.keeper.kept))
	for _, uid := range slices.Sorted(maps.Keys(a.keeper.kept)) {
		pods = append(pods, a.keeper.kept[uid].Pod)
	}
	a.settings.Log.Info("stopping all pods", "pods", len(pods), "within", within.String())
	a.workers.Hold()
	a.ending = &ending{order: shutdown.New(a.settings.Now(), within, pods), done: make(chan struct{})}
	return a.ending.done
}

// stopDue stops the pods whose turn it is, and returns when the next turn comes; zero while nothing
// is to stop.
func (a *Agent) stopDue() time.Time {
	if a.ending == nil || a.ending.closed {
		return time.Time{}
	}
	now := a.settings.Now()
	stop, wake, done := a.ending.order.Next(now, func(uid types.UID) bool { return !a.workers.Stopped(uid) })
	for _, s := range stop {
		a.workers.Stop(now, s.UID, s.Grace)
	}
	if done {
		a.ending.closed = true
		close(a.ending.done)
	}
	return wake
}

// loopUntilStopped stops all pods after the agent was told to end.
func (a *Agent) loopUntilStopped(ctx context.Context) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := a.beginEnding(a.settings.StopPods)
	go func() {
		<-done
		stop()
	}()
	a.loop(ctx)
}
