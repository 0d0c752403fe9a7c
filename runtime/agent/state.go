package agent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/owner"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/sleep"
)

// loopState is the state of an agent. Only its loop changes it. Other goroutines post functions to the inbox. The parts
// of the agent, such as probing and admitting, embed it and add their own fields.
type loopState struct {
	settings Settings
	world    World
	inbox    inbox
	log      *logger
	metrics  *agentMetrics
	// listeners are notified in this order.
	listeners  []Listener
	workers    *podworkers.Workers
	reconciler *reconciler
	// running cancels the running pass of each pod. last is the result of each pod's last pass.
	running map[types.UID]context.CancelFunc
	last    map[types.UID]lastPass
	// facts are the facts of the node, also for readers outside the loop.
	facts   *nodeFacts
	runtime runtimeState
	started time.Time
	ready   bool
	// next is when a pass is due, as begin has computed it. It is zero if none is. It is valid while nextIsValid is
	// set: until an event that could lead to a pass.
	next        time.Time
	nextIsValid bool
}

func newLoopState(w World, s Settings, resolved func()) *loopState {
	ledger := owner.New(owner.Pods, s.Applied)
	for _, source := range s.Sources {
		ledger.Add(source)
	}
	workers := podworkers.New(podworkers.Settings{Parallel: s.Parallel, Jitter: s.Random, ByUID: ledger.ByUID})
	return &loopState{
		settings: s, world: w, inbox: make(inbox), log: newLogger(s.Log), metrics: newAgentMetrics(w.Client, s.Now),
		workers: workers, reconciler: newReconciler(workers, ledger, w.Records.Read, resolved),
		running: map[types.UID]context.CancelFunc{}, last: map[types.UID]lastPass{}, facts: &nodeFacts{},
	}
}

func (s *loopState) now() time.Time { return s.settings.Now() }

// wakePod requests a pass of a pod.
func (s *loopState) wakePod(uid types.UID) { s.workers.Wake(s.now(), uid) }

// gone returns the pods that the agent neither keeps nor deletes, because another process has deleted them.
func (s *loopState) gone() (uids []types.UID) {
	for uid := range s.last {
		if !s.workers.Has(uid) && s.running[uid] == nil {
			uids = append(uids, uid)
		}
	}
	return uids
}

// lastPass is the result of a pod's last pass.
type lastPass struct {
	at time.Time
	// pod is the pod that the pass has applied.
	pod     *podspec.Desired
	failure string
	waiting []string
	// rejection is the reason why the pod is not admitted. It is nil if it is admitted.
	rejection *model.Rejection
	// eviction is the reason why the pod is evicted. It is nil if it is not evicted.
	eviction *model.Eviction
	// idle is set for a pod that uses no resources any more.
	idle bool
	// found is the phase and readiness that the pass has found.
	found finding
}

// runtimeState records whether the runtime answers.
type runtimeState struct {
	up    bool
	since time.Time
	err   string
}

// inbox passes functions from other goroutines to the loop, which runs them one after the other.
type inbox chan func()

// post makes the loop run a function, unless the context ends first.
func (i inbox) post(ctx context.Context, do func()) {
	select {
	case i <- do:
	case <-ctx.Done():
	}
}

// every posts a function periodically.
func (i inbox) every(ctx context.Context, period time.Duration, do func()) {
	for sleep.For(ctx, period) == nil {
		i.post(ctx, do)
	}
}

// runUntil runs posted functions until do returns.
func (i inbox) runUntil(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	for {
		select {
		case posted := <-i:
			posted()
		case <-done:
			return
		}
	}
}

// call runs find in the loop and waits for its result.
func call[T any](ctx context.Context, i inbox, find func() T) (found T, err error) {
	reply := make(chan T, 1)
	i.post(ctx, func() { reply <- find() })
	select {
	case found = <-reply:
		return found, nil
	case <-ctx.Done():
		return found, context.Cause(ctx)
	}
}
