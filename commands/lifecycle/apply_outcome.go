package lifecycle

import (
	"context"
	"errors"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
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
