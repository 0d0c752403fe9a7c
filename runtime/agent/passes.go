package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/syncpod"
)

// Passes makes passes over pods.
type Passes interface {
	Apply(ctx context.Context, desired *podspec.Desired, opts executor.Options) (*executor.Outcome, error)
	Delete(ctx context.Context, ref model.PodRef, opts executor.Options) (*executor.Outcome, error)
}

// passResult is the result of a pass.
type passResult struct {
	pass    podworkers.Pass
	outcome *executor.Outcome
	err     error
	// redactor redacts the Secrets of a pod that has probes.
	redactor *redaction.Redactor
	// missing are the hostPaths for which the pod is held.
	missing []string
	// took is the duration of the pass.
	took time.Duration
	// interrupted is set if the pass was cut short, because the wanted state changed or the agent ends. This is not a
	// failure.
	interrupted bool
}

// passMaker makes passes in parallel to the loop. It reads only the immutable parts of loopState.
type passMaker struct {
	*loopState

	pulls *pullQueue
}

// run makes one pass of a pod with the options from the loop.
func (m *passMaker) run(ctx context.Context, p podworkers.Pass, opts executor.Options) passResult {
	opts.PullBackoff, opts.AllowKubelet, opts.Watched, opts.ClusterPods = true, m.settings.AllowKubelet, true, true
	opts.Report = func(e executor.Event) { m.notify(ctx, &Event{Kind: Stepped, Pod: p.Ref, Step: e}) }
	began, done := m.now(), passResult{pass: p}
	opts.Pulling = m.pulls.callback(ctx, p.Ref.UID)
	opts.GracePeriod, opts.Stop, opts.Evict = p.Grace, p.Kind == podworkers.Stop, p.Eviction
	switch p.Kind {
	case podworkers.Terminate:
		opts.Precondition = m.ifStillOwned(p.Ref)
		done.outcome, done.err = m.world.Passes.Delete(ctx, p.Ref, opts)
	case podworkers.End:
		opts.End, opts.Precondition = true, m.ifStillEnds(p.Ref)
		done.outcome, done.err = m.world.Passes.Apply(ctx, p.Pod, opts)
	case podworkers.Stop, podworkers.Evict:
		done.outcome, done.err = m.world.Passes.Apply(ctx, p.Pod, opts)
	case podworkers.Sync:
		opts.Precondition, opts.Planned = ifUnchanged(&p), m.notePlans(ctx, p.Ref)
		done.outcome, done.err = m.world.Passes.Apply(ctx, p.Pod, opts)
		if probe.HasAny(p.Pod.Pod) {
			done.redactor = m.world.Records.Redactor(p.Pod)
		}
	}
	if p.Kind == podworkers.Sync && done.outcome != nil {
		done.missing = missingPaths(done.pod(), done.outcome.Plan)
	}
	done.took = m.now().Sub(began)
	return done
}

// notePlans returns a callback for the plans of a pass. A pass that only stops and removes leaves the status of the pod
// final, although it has not ended.
func (m *passMaker) notePlans(ctx context.Context, ref model.PodRef) func(*plan.Plan) {
	before := false
	return func(p *plan.Plan) {
		startless := len(p.Steps) > 0 && !slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
			return s.Kind == plan.StartContainer
		})
		if startless == before {
			return
		}
		before = startless
		m.inbox.post(ctx, func() {
			m.workers.Planned(ref.UID, startless)
			m.notify(ctx, &Event{Kind: Planned, Pod: ref})
		})
	}
}

// ifStillOwned returns a precondition that stops the deletion of a pod that a user has applied by hand in the meantime.
func (m *passMaker) ifStillOwned(ref model.PodRef) func(*state.Checkpoint) error {
	return func(c *state.Checkpoint) error {
		if mayDelete(c, m.reconciler.ledger.Order) {
			return nil
		}
		return &syncpod.SupersededError{Pod: ref}
	}
}

// ifStillEnds returns a precondition that stops the end of a pod whose deletion has begun, or that a user has applied
// by hand in the meantime.
func (m *passMaker) ifStillEnds(ref model.PodRef) func(*state.Checkpoint) error {
	return func(c *state.Checkpoint) error {
		if c.Deletion != nil {
			return &syncpod.SupersededError{Pod: ref, Deleting: true}
		}
		return m.ifStillOwned(ref)(c)
	}
}

// ifUnchanged returns a precondition that stops the pass of a pod that another process has deleted, or has begun to
// delete, without the loop's knowledge. The loop finishes the deletion first. A deleted pod may have to wait for
// another pod of its name.
func ifUnchanged(p *podworkers.Pass) func(*state.Checkpoint) error {
	return func(c *state.Checkpoint) error {
		switch {
		case c.Leaving() != nil:
			return &syncpod.SupersededError{Pod: p.Ref, Deleting: true}
		case p.Repeated && c.Applied == nil && !c.Unreadable:
			return &syncpod.SupersededError{Pod: p.Ref, Deleted: true}
		}
		return nil
	}
}

// pod returns the pod that the pass has applied: the earlier version if an edit is not admitted.
func (p *passResult) pod() *podspec.Desired {
	if p.outcome != nil && p.outcome.Desired != nil {
		return p.outcome.Desired
	}
	return p.pass.Pod
}

// superseded reports whether a pass found that another process has changed or deleted the pod.
func (p *passResult) superseded() bool { return errors.As(p.err, new(*syncpod.SupersededError)) }

// failure returns the error of a pass or of one of its steps. It is nil if none failed.
func (p *passResult) failure() error {
	if p.err != nil || p.outcome == nil {
		return p.err
	}
	return p.outcome.Err()
}

// failureText returns the error of the pass. It is empty for a pass that succeeded or was cut short.
func (p *passResult) failureText() string {
	if p.interrupted {
		return ""
	}
	return textOf(p.failure())
}

// planned returns the last plan that the pass has executed. It is nil if there is none.
func (p *passResult) planned() *plan.Plan {
	if p.outcome == nil {
		return nil
	}
	return p.outcome.Plan
}

// result returns the result for the pod's worker.
func (p *passResult) result() podworkers.Result {
	r := podworkers.Result{Failed: p.failure() != nil}
	if made := p.planned(); made != nil {
		r.Pending, r.Until, r.Recheck = made.Pending(), made.ChangesAt, made.Recheck
		r.Ended = made.End != nil && made.End.Done && !r.Failed
	}
	return r
}

// waiting returns the conditions that the pod waits for after the pass, as worded in its plan.
func (p *passResult) waiting() []string {
	made := p.planned()
	if made == nil {
		return nil
	}
	var texts []string
	for i := range made.Holds {
		texts = append(texts, holdText(&made.Holds[i]))
	}
	return append(texts, made.WaitingFor...)
}

// holdText describes a hold of a pod or container.
func holdText(h *plan.Hold) string {
	text := fmt.Sprintf("%s: %s", h.Reason, h.Message)
	if h.Container != "" {
		text = "container " + h.Container + ": " + text
	}
	return text
}
