package executor

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/plan"
)

// maxConcurrent limits the steps that run at the same time.
const maxConcurrent = 8

// scheduler runs the steps of a plan in the order of their dependencies, and keeps their results.
type scheduler struct {
	plan   *plan.Plan
	report *reporter
	// act executes one step, create creates a replacement early, and drop removes one that does not start after all.
	act    func(context.Context, *plan.Step) (string, error)
	create func(context.Context, *plan.Step)
	drop   func(context.Context, *plan.Step)

	// gates has one entry for each step.
	gates map[string]*gate
	slots chan struct{}

	mu sync.Mutex
	// blocks are the steps that have ended and prevent those after them from beginning.
	blocks map[string]bool
	results
}

// results are the results of the steps of a plan.
type results struct {
	failed []StepError
	// refused are steps that were done except for a part that podctl refuses, such as the removal of a claim with an
	// invalid name.
	refused []StepError
	skipped []*plan.Step
	changed *StateChangedError
	aborted bool
}

// undone reports whether a step failed or did not begin.
func (r *results) undone(s *plan.Step) bool {
	return slices.Contains(r.skipped, s) || slices.ContainsFunc(r.failed, func(f StepError) bool { return f.Step == s })
}

// complete reports whether every step was done.
func (r *results) complete() bool { return len(r.failed)+len(r.skipped) == 0 && !r.aborted }

func newScheduler(p *plan.Plan, report *reporter) *scheduler {
	s := &scheduler{
		plan: p, report: report,
		gates: map[string]*gate{}, slots: make(chan struct{}, maxConcurrent), blocks: map[string]bool{},
	}
	for i := range p.Steps {
		s.gates[p.Steps[i].ID] = newGate()
	}
	return s
}

// run runs the steps of the plan, each as soon as its needs are met.
func (x *scheduler) run(ctx context.Context) {
	var group sync.WaitGroup
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		group.Go(func() {
			defer x.gates[s.ID].end()
			x.createEarly(ctx, s)
			x.await(s.Needs.Of(plan.Begin))
			x.visit(ctx, s)
		})
	}
	group.Wait()
}

// await waits until each needed step has reached its state.
func (x *scheduler) await(needs plan.Needs) {
	for _, e := range needs {
		<-x.gates[e.Step].reached(e.Until)
	}
}

// createEarly creates a replacement while the container it replaces is stopped. A failure is reported when the
// replacement starts.
func (x *scheduler) createEarly(ctx context.Context, s *plan.Step) {
	needs := s.Needs.Of(plan.Create)
	if len(needs) == 0 {
		return
	}
	x.await(needs)
	x.mu.Lock()
	blocked := x.blocked(ctx, needs)
	x.mu.Unlock()
	if blocked {
		return
	}
	x.slots <- struct{}{}
	defer func() { <-x.slots }()
	x.create(ctx, s)
}

// visit runs one step, or skips it.
func (x *scheduler) visit(ctx context.Context, s *plan.Step) {
	ev := x.perform(ctx, s)
	if ev == nil {
		return
	}
	for _, e := range s.Needs.Of(plan.Begin) {
		<-x.gates[e.Step].done // Report the steps before it first.
	}
	x.report.event(*ev)
}

// perform runs one step in a free slot and returns its event; nil if the step was skipped.
func (x *scheduler) perform(ctx context.Context, s *plan.Step) *Event {
	if s.Kind != plan.StopContainer {
		// Stops wait for other steps to end and would occupy the slots that those need.
		x.slots <- struct{}{}
		defer func() { <-x.slots }()
	}
	if x.mustSkip(ctx, s) {
		return nil
	}
	ctx, end := cri.StartSpan(ctx, string(s.Kind), attribute.String("k8s.container.name", s.Container))
	began := x.report.now()
	x.report.event(Event{Kind: StepStarted, Step: s, Time: began})
	detail, err := x.act(ctx, s)
	end(err)
	err = x.report.redactor.Error(err)
	ended := x.report.now()
	ev := &Event{Kind: StepDone, Step: s, Time: ended, Took: ended.Sub(began), Detail: detail}
	if err != nil {
		ev.Kind, ev.Err = StepFailed, x.fail(s, err)
	}
	return ev
}

// mustSkip reports whether a step must not begin: the pass was interrupted or aborted, or a step before it failed and
// blocks it. A skipped step blocks later steps only if its failure would: a container without an image does not prevent
// those after it from starting (kubelet: SyncPod, start).
func (x *scheduler) mustSkip(ctx context.Context, s *plan.Step) bool {
	x.mu.Lock()
	blocked := x.blocked(ctx, s.Needs.Of(plan.Begin))
	if blocked {
		x.blocks[s.ID] = s.OnFailure != plan.Continue
		x.skipped = append(x.skipped, s)
	}
	x.mu.Unlock()
	if blocked {
		x.drop(ctx, s)
		x.report.event(Event{Kind: StepSkipped, Step: s, Time: x.report.now()})
	}
	return blocked
}

// blocked reports whether steps with these needs can no longer begin. The caller holds mu.
func (x *scheduler) blocked(ctx context.Context, needs plan.Needs) bool {
	return x.aborted || ctx.Err() != nil ||
		slices.ContainsFunc(needs, func(e plan.Edge) bool { return x.blocks[e.Step] })
}

// passed reports whether the steps after an ended one may continue.
func (x *scheduler) passed(id string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.blocks[id]
}

// fail records a failure and its effect on the other steps. A changed state ends the pass without a failure: the caller
// makes a new plan.
func (x *scheduler) fail(s *plan.Step, err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if changed := (*StateChangedError)(nil); errors.As(err, &changed) {
		x.changed, x.aborted = changed, true
		x.blocks[s.ID] = true
		return err
	}
	failure := stepError(x.plan.Pod, s, err)
	x.failed = append(x.failed, failure)
	x.aborted = x.aborted || s.OnFailure == plan.Abort || s.OnFailure == plan.Reject
	x.blocks[s.ID] = s.OnFailure != plan.Continue
	return &failure
}

// refuse records a part of a step that podctl refuses to do. It is not a failure: the pass continues, and the
// checkpoint of a deleted pod is removed.
func (x *scheduler) refuse(s *plan.Step, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refused = append(x.refused, stepError(x.plan.Pod, s, err))
}
