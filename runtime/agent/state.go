package agent

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/sleep"
)

// loopState is the state of an agent. Only its loop changes it; other goroutines post to the inbox. The parts of the agent (probing,
// admitting and so on) embed it, and add what they alone need.
type loopState struct {
	settings Settings
	world    World
	inbox    inbox
	log      *logger
	metrics  *measuring
	// listeners are notified in this order.
	listeners []Listener
	workers   *podworkers.Workers
	keeper    *keeper
	// running are the passes that run, by pod; last is how the last pass of each ended.
	running map[types.UID]context.CancelFunc
	last    map[types.UID]lastPass
	// conditions are what the node is short of.
	conditions []v1.NodeConditionType
	runtime    runtimeState
	started    time.Time
	ready      bool
	// next is when a pass is due, as begin has found it; zero for never. It holds while still is set:
	// since then nothing has happened that a pass could follow from.
	next  time.Time
	still bool
}

func newLoopState(w World, s Settings, resolved func()) *loopState {
	workers := podworkers.New(podworkers.Settings{Parallel: s.Parallel, Jitter: s.Random})
	return &loopState{
		settings: s, world: w, inbox: make(inbox), log: newLogger(s.Log), metrics: newMeasuring(w.Client, s.Now),
		workers: workers, keeper: newKeeper(workers, s.Sources, s.Applied, w.Records.Read, resolved),
		running: map[types.UID]context.CancelFunc{}, last: map[types.UID]lastPass{},
	}
}

func (s *loopState) now() time.Time { return s.settings.Now() }

// wakePod has a pod looked at.
func (s *loopState) wakePod(uid types.UID) { s.workers.Wake(s.now(), uid) }

// lastPass is what the last pass of a pod came to.
type lastPass struct {
	at time.Time
	// pod is what it brought about.
	pod     *podspec.Desired
	failure string
	waiting []string
	// rejection is why the pod is not admitted; nil for one that is.
	rejection *model.Rejection
	// eviction is why the pod is evicted; nil for one that is not.
	eviction *model.Eviction
	// idle is set for a pod that takes nothing any more.
	idle bool
	// found is how the pass has found it.
	found finding
}

// runtimeState is whether the runtime answers.
type runtimeState struct {
	up    bool
	since time.Time
	err   string
}

// inbox is how goroutines beside the loop reach it: it does what they post, one after the other.
type inbox chan func()

// post lets the loop do something, unless the context ends before.
func (i inbox) post(ctx context.Context, do func()) {
	select {
	case i <- do:
	case <-ctx.Done():
	}
}

// every posts something to do, again and again.
func (i inbox) every(ctx context.Context, period time.Duration, do func()) {
	for sleep.For(ctx, period) == nil {
		i.post(ctx, do)
	}
}

// ask lets the loop find something out, and waits for it.
func ask[T any](ctx context.Context, i inbox, find func() T) (found T, err error) {
	reply := make(chan T, 1)
	i.post(ctx, func() { reply <- find() })
	select {
	case found = <-reply:
		return found, nil
	case <-ctx.Done():
		return found, context.Cause(ctx)
	}
}
