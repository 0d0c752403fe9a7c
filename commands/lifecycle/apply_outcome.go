package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/wait"
)

// podOutcome is the result of one pod in `apply -o json`.
type podOutcome struct {
	Pod model.PodRef `json:"pod"`
	// Changed reports whether the last pass had steps, or changed podctl's record. Complete reports whether no work is
	// left. Both are nil if no pass was made.
	Changed  *bool         `json:"changed,omitempty"`
	Complete *bool         `json:"complete,omitempty"`
	Summary  *plan.Summary `json:"summary,omitempty"`
	Holds    []plan.Hold   `json:"holds,omitempty"`
	// Skipped are the ids of the steps that were not started.
	Skipped  []string `json:"skipped,omitempty"`
	ExitCode int      `json:"exitCode"`
	Error    string   `json:"error,omitempty"`
}

// showSkipped writes the skipped objects as JSON lines. The text output has them in the notes.
func (o *applyOptions) showSkipped(sess *session.Session, skipped []document.Skipped) {
	if o.output != "json" {
		return
	}
	for _, s := range skipped {
		view.Line(sess.IO, struct {
			APIVersion string           `json:"apiVersion"`
			Kind       string           `json:"kind"`
			Object     document.Skipped `json:"object"`
		}{model.APIVersion, "SkippedObject", s})
	}
}

// printOutcomes writes the results of all pods as one line.
func (a *applier) printOutcomes(ctx context.Context, sess *session.Session, pods []*podspec.Desired, outcomes []error) {
	items := make([]podOutcome, 0, len(pods))
	for i, d := range pods {
		ref := model.RefOf(d.Pod)
		items = append(items, outcomeOf(ctx, sess, ref, a.done[ref], outcomes[i]))
	}
	view.Line(a.io, view.List("ApplyOutcome", items))
}

func outcomeOf(
	ctx context.Context, sess *session.Session, ref model.PodRef, outcome *executor.Outcome, err error,
) podOutcome {
	item := podOutcome{Pod: ref, ExitCode: exit.Code(ctx, err)}
	if skipped := (*exit.SkippedError)(nil); errors.As(err, &skipped) {
		err = skipped.Err // The steps have their own field.
	}
	if err != nil {
		item.Error = sess.ErrorText(err)
	}
	if outcome == nil || outcome.Plan == nil {
		return item
	}
	p := outcome.Plan
	changed, complete := len(p.Steps) > 0 || p.Records(), p.Complete && len(outcome.Failed)+len(outcome.Skipped) == 0
	item.Changed, item.Complete, item.Summary, item.Holds = &changed, &complete, &p.Summary, p.Holds
	for _, s := range outcome.Skipped {
		item.Skipped = append(item.Skipped, s.ID)
	}
	return item
}

// conclude prints the result of a pod, and returns an error for failed and held steps. A missing ConfigMap or Secret is
// an error also without --wait, because no later call resolves it by itself.
func (a *applier) conclude(d *podspec.Desired, outcome *executor.Outcome, err error, began time.Time) error {
	a.mu.Lock()
	a.done[model.RefOf(d.Pod)] = outcome
	a.mu.Unlock()
	if err != nil {
		return withSkipped(outcome, err)
	}
	if failure := outcome.Err(); failure != nil {
		return errors.Join(failure, remaining(outcome))
	}
	p := outcome.Plan
	if a.o.output != "json" && !a.wasReported(d, p) {
		text := view.Outcome(p)
		if a.o.wait != "" {
			text = fmt.Sprintf("is %s (%.1fs)", a.o.wait, a.io.Now().Sub(began).Seconds())
		}
		a.io.Print("pod %s %s", model.RefOf(d.Pod), text)
	}
	if p.MissesObjects() || a.o.exitCode && a.o.wait == "" && (!p.Complete || p.Records()) {
		return exit.With(exit.NotYet)
	}
	return nil
}

// wasReported reports whether the success of the pod was printed before, and no step was needed since.
func (a *applier) wasReported(d *podspec.Desired, p *plan.Plan) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	ref := model.RefOf(d.Pod)
	before := a.reported[ref] == d.Digest() && len(p.Steps) == 0
	a.reported[ref] = d.Digest()
	return before
}

// remaining describes the work that is left after a pass with failures; nil if there is none.
func remaining(outcome *executor.Outcome) error {
	var parts []string
	for _, s := range outcome.Skipped {
		failed := slices.ContainsFunc(outcome.Failed, func(e executor.StepError) bool {
			return e.Step.Container == s.Container
		})
		if s.Kind == plan.StartContainer && !failed {
			parts = append(parts, s.Container+" not started")
		}
	}
	if text := view.Left(outcome.Plan); text != "" {
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("pod %s: %s", outcome.Plan.Pod, strings.Join(parts, "; "))
}

// withSkipped adds the skipped steps to an error.
func withSkipped(outcome *executor.Outcome, err error) error {
	if outcome == nil || len(outcome.Skipped) == 0 {
		return err
	}
	var skipped []string
	for i := range outcome.Plan.Steps {
		s := &outcome.Plan.Steps[i]
		if s.Kind != plan.CheckContainer && slices.Contains(outcome.Skipped, s) {
			skipped = append(skipped, s.Kind.Verb()+" "+s.Object())
		}
	}
	blocked := (*wait.BlockedError)(nil)
	return &exit.SkippedError{Err: err, Steps: skipped, Final: errors.As(err, &blocked)}
}
