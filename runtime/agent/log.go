package agent

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// logger writes a line for each decision. It omits repetitions.
type logger struct {
	*slog.Logger
	// problems are the problems of sources that were logged last. failures is the last logged failure of each pod.
	problems map[loggedProblem]bool
	failures map[model.PodRef]string
	// holds are the logged holds by pod.
	holds map[model.PodRef][]string
	// notes are the logged notes by source.
	notes map[string]map[string]bool
	// takeovers are the logged takeovers by source.
	takeovers map[string]map[loggedProblem]bool
	// records are the logged errors of unreadable checkpoints.
	records map[string]bool
}

// loggedProblem is a problem of a source, without the time when it was found.
type loggedProblem struct{ file, text string }

func (p loggedProblem) compare(other loggedProblem) int {
	return cmp.Or(cmp.Compare(p.file, other.file), cmp.Compare(p.text, other.text))
}

func newLogger(l *slog.Logger) *logger {
	return &logger{
		Logger:    l,
		problems:  map[loggedProblem]bool{},
		failures:  map[model.PodRef]string{},
		holds:     map[model.PodRef][]string{},
		notes:     map[string]map[string]bool{},
		records:   map[string]bool{},
		takeovers: map[string]map[loggedProblem]bool{},
	}
}

// handleEvent logs what passes do.
func (l *logger) handleEvent(ctx context.Context, e *Event) {
	switch e.Kind {
	case Stepped:
		l.logStep(ctx, e.Step)
	case Passed:
		l.logFailure(e.pass)
		l.logHolds(e.pass)
	case Planned, Probed, Ended:
	}
}

// logStep logs a step of a pass. The context is the context of the pass: a step that fails after it has ended was cut
// short.
func (l *logger) logStep(ctx context.Context, e executor.Event) {
	attrs := []any{"pod", e.Pod.String()}
	if e.Step != nil {
		if e.Step.Kind == plan.CheckContainer {
			return
		}
		attrs = append(attrs, "step", e.Step.Kind.Verb()+" "+e.Step.Object())
	}
	if e.Detail != "" {
		attrs = append(attrs, "detail", e.Detail)
	}
	switch e.Kind {
	case executor.StepDone:
		if e.Step != nil && e.Step.Message != "" {
			attrs = append(attrs, "because", e.Step.Message)
		}
		l.Info("step done", append(attrs, "took", e.Took.String())...)
	case executor.StepFailed:
		if ctx.Err() != nil {
			l.Info("step interrupted", append(attrs, "because", context.Cause(ctx).Error())...)
			return
		}
		l.Error("step failed", append(attrs, "error", e.Err.Error())...)
	case executor.Warning:
		l.Warn("warning", attrs...)
	case executor.StepStarted, executor.StepProgress, executor.StepSkipped:
	}
}

// logFailure logs why a pass could not be made. The failures of steps are logged by step.
func (l *logger) logFailure(p *passResult) {
	switch {
	case p.err == nil || p.superseded() || p.interrupted:
		delete(l.failures, p.pass.Ref)
	case l.failures[p.pass.Ref] != p.err.Error():
		l.failures[p.pass.Ref] = p.err.Error()
		l.Error("pass failed", "pod", p.pass.Ref.String(), "error", p.err.Error())
	}
}

// logHolds logs the holds of a pod that are checked again: each when it begins, and the end of all.
func (l *logger) logHolds(p *passResult) {
	ref, made, now := p.pass.Ref, p.planned(), []string(nil)
	if p.pass.Kind != podworkers.Sync || p.superseded() {
		delete(l.holds, ref)
		return
	}
	if made == nil {
		return
	}
	for i := range made.Holds {
		if h := &made.Holds[i]; h.Recheck > 0 {
			now = append(now, holdText(h))
		}
	}
	before := l.holds[ref]
	switch {
	case slices.Equal(before, now):
		return
	case len(now) == 0:
		delete(l.holds, ref)
		l.Info("pod no longer held", "pod", ref.String())
		return
	}
	l.holds[ref] = now
	for _, text := range now {
		if !slices.Contains(before, text) {
			l.Warn("pod held", "pod", ref.String(), "because", text)
		}
	}
}

// logProblems logs new problems of sources, which it returns, and problems that are gone.
func (l *logger) logProblems(now []sources.Problem) (news []sources.Problem) {
	current := map[loggedProblem]bool{}
	for _, one := range now {
		p := loggedProblem{one.File, one.Text}
		current[p] = true
		if !l.problems[p] {
			l.Warn("source problem", "file", p.file, "problem", p.text)
			news = append(news, one)
		}
	}
	for _, p := range slices.SortedStableFunc(maps.Keys(l.problems), loggedProblem.compare) {
		if !current[p] {
			l.Info("source problem fixed", "file", p.file, "problem", p.text)
		}
	}
	l.problems = current
	return news
}

// logNotes logs the parts of a source's files that have no effect, each once while it is there.
func (l *logger) logNotes(source string, notes []string) {
	now := map[string]bool{}
	for _, text := range notes {
		if now[text] = true; !l.notes[source][text] {
			l.Info("source note", "note", text)
		}
	}
	l.notes[source] = now
}

// logTakeovers logs the pods applied by hand that files have taken over, each once.
func (l *logger) logTakeovers(source string, takeovers []sources.Problem) {
	now := map[loggedProblem]bool{}
	for _, one := range takeovers {
		p := loggedProblem{one.File, one.Text}
		if now[p] = true; !l.takeovers[source][p] {
			l.Warn("taken over", "file", p.file, "note", p.text)
		}
	}
	l.takeovers[source] = now
}

// logUnreadable logs the checkpoints that cannot be read, each once.
func (l *logger) logUnreadable(errs map[types.UID]error) {
	for _, uid := range slices.Sorted(maps.Keys(errs)) {
		if text := errs[uid].Error(); !l.records[text] {
			l.records[text] = true
			l.Error("cannot read checkpoint", "error", text)
		}
	}
}
