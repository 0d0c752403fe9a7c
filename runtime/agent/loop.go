package agent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// loop runs posted functions and starts due work until the context ends.
func (a *Agent) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer a.pulse.rest()
	for ctx.Err() == nil {
		a.pulse.work(a.now())
		wake := a.begin(ctx)
		timer.Stop()
		if !wake.IsZero() {
			timer.Reset(max(wake.Sub(a.now()), time.Millisecond))
		}
		a.pulse.rest()
		select {
		case <-ctx.Done():
		case do := <-a.inbox:
			a.pulse.work(a.now())
			do()
		case <-timer.C:
			a.nextIsValid = true
		}
	}
}

// begin begins the passes and runs the probes that are due. It returns when the next one is due. Most probes start and
// end without a visit to all pods, because there are many of both.
func (a *Agent) begin(ctx context.Context) time.Time {
	if !a.nextIsValid || !a.next.IsZero() && !a.now().Before(a.next) {
		a.next = a.beginPasses(ctx)
	}
	a.nextIsValid = false
	return model.Earlier(a.next, a.probes.startDue(ctx))
}

// beginPasses begins the passes that are due, and returns when the next one is due.
func (a *Agent) beginPasses(ctx context.Context) time.Time {
	ends := a.stopper.stopDue()
	dropsDue := a.reconciler.resolveIfDue(a.now())
	a.pulls.continueDue()
	due, cut, wake := a.workers.Next(a.now())
	for _, uid := range cut {
		a.running[uid]()
	}
	for _, p := range due {
		a.start(ctx, p)
	}
	a.countWanted()
	a.checkReady()
	return model.Earlier(model.Earlier(wake, ends), dropsDue)
}

// start makes a pass in parallel to the loop. The end of the agent does not cancel a deletion or a stop, because it
// lasts no longer than its grace period.
func (a *Agent) start(ctx context.Context, p podworkers.Pass) {
	own := ctx
	if p.Kind != podworkers.Sync {
		own = context.WithoutCancel(ctx)
		a.probes.limitToReadiness(p.Ref.UID)
	}
	if p.Kind == podworkers.Stop || p.Kind == podworkers.Evict {
		// Stop the version that was applied: the manifest may have changed since.
		p.Pod = a.reconciler.asApplied(p.Pod)
	}
	own, cancel := context.WithCancelCause(own)
	a.running[p.Ref.UID] = func() { cancel(executor.ErrOutdated) }
	opts := executor.Options{Warnings: a.reconciler.warnings(p.Ref.UID), Options: plan.Options{
		Admission: a.admitter.optionsFor(p.Ref.UID), ProbedSince: a.probes.set.Began(),
	}}
	a.runParallel(&p, func() {
		done := a.maker.run(own, p, opts)
		done.interrupted = own.Err() != nil
		cancel(nil)
		a.inbox <- func() { a.handlePass(ctx, &done) }
	})
}

// drain waits for the running passes, at most for Settings.LastPasses, and for probes that the end of the agent has cut
// short.
func (a *Agent) drain() {
	var limit <-chan time.Time
	if a.settings.LastPasses > 0 {
		limit = time.After(a.settings.LastPasses)
	}
	for len(a.running) > 0 {
		select {
		case do := <-a.inbox:
			do()
		case <-limit:
			return
		}
	}
	a.probes.goroutines.Wait()
}

// handleEndPass handles the result of a pass that ends a pod for good.
func handleEndPass(a *Agent, now time.Time, p *passResult) {
	uid, result := p.pass.Ref.UID, p.result()
	if !result.Failed {
		// No container runs any more (kubelet: SyncTerminatingPod).
		a.probes.forget(uid)
	}
	if result.Ended {
		a.admitter.wakeWaiting(now)
	}
	// Only the disk shows how far the pass came.
	a.reader.readOne(uid)
}

// handlePass handles the result of a pass.
func (a *Agent) handlePass(ctx context.Context, p *passResult) {
	uid, now := p.pass.Ref.UID, a.now()
	delete(a.running, uid)
	delete(a.pulls.turns, uid)
	found := p.found(now)
	changed := p.hasChanged() || found != a.last[uid].found
	a.notify(ctx, &Event{Kind: Passed, Pod: p.pass.Ref, Outcome: p.outcome, Changed: changed, pass: p})
	a.paths.watch(ctx, uid, p.missing)
	a.admitter.handlePass(now, p)
	a.evictor.handlePass(p)
	made := cmp.Or(p.planned(), &plan.Plan{})
	before := a.last[uid]
	a.last[uid] = lastPass{
		at: now, pod: p.pass.Pod, failure: p.failureText(), waiting: p.waiting(),
		rejection: made.Rejection, eviction: made.Eviction, idle: p.idle(before.idle), found: found,
	}
	if a.last[uid].idle && !before.idle {
		a.admitter.wakeWaiting(now)
	}
	a.workers.Done(now, uid, p.result())
	switch {
	case p.superseded():
		a.workers.Forget(uid)
		a.probes.forget(uid)
		a.reader.readOne(uid)
	case p.pass.Kind == podworkers.Terminate:
		if p.failure() == nil {
			a.handleEnd(ctx, p)
		}
	case p.pass.Kind == podworkers.End:
		handleEndPass(a, now, p)
	case p.pass.Kind != podworkers.Stop:
		a.probes.sync(ctx, p)
		if a.reader.noteSync(p) {
			a.admitter.wakeWaiting(now)
		}
	}
}

// forget drops the state of pods that are gone, beside that of the reconciler and of the workers.
func (a *Agent) forget(uids ...types.UID) {
	for _, uid := range uids {
		delete(a.last, uid)
		a.paths.forget(uid)
		a.probes.forget(uid)
		a.evictor.forget(uid)
		a.admitter.handleEnd(a.now(), uid)
	}
}

// handleEnd forgets a pod that is gone.
func (a *Agent) handleEnd(ctx context.Context, p *passResult) {
	uid := p.pass.Ref.UID
	a.notify(ctx, &Event{Kind: Ended, Pod: p.pass.Ref})
	if i := slices.Index(a.reconciler.ledger.Order, a.reconciler.ownerOf(uid)); i >= 0 {
		a.settings.Sources[i].Ended(p.pass.Ref)
	}
	a.reconciler.forget(a.now(), uid)
	a.forget(uid)
}
