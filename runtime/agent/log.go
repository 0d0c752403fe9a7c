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

// logger writes one line for each decision. What repeats itself is written once.
type logger struct {
	*slog.Logger
	// problems are those of the sources that were written last, failures the last of each pod.
	problems map[toldProblem]bool
	failures map[model.PodRef]string
	// holds are those that were written, by pod.
	holds map[model.PodRef][]string
	// notes are those of each source that were written.
	notes map[string]map[string]bool
	// takeovers are those of each source that were written.
	takeovers map[string]map[toldProblem]bool
	// records are the checkpoints that could not be read, as they were written last.
	records map[string]bool
}

// toldProblem is a problem of a source, whenever it was found.
type toldProblem struct{ file, text string }

func (p toldProblem) compare(other toldProblem) int {
	return cmp.Or(cmp.Compare(p.file, other.file), cmp.Compare(p.text, other.text))
}

func newLogger(l *slog.Logger) *logger {
	return &logger{Logger: l, problems: map[toldProblem]bool{}, failures: map[model.PodRef]string{}, holds: map[model.PodRef][]string{}, notes: map[string]map[string]bool{}, records: map[string]bool{}, takeovers: map[string]map[toldProblem]bool{}}
}

// hear writes what passes do.
func (l *logger) hear(ctx context.Context, e *Event) {
	switch e.Kind {
	case Stepped:
		l.step(ctx, e.Step)
	case Passed:
		l.failed(e.pass)
		l.held(e.pass)
	case Probed, Ended:
	}
}

// step writes what a pass has done. The context is that of the pass: what fails once it has ended was cut short.
func (l *logger) step(ctx context.Context, e executor.Event) {
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
		l.Info("done", append(attrs, "took", e.Took.String())...)
	case executor.StepFailed:
		if ctx.Err() != nil {
			l.Info("cut short", append(attrs, "because", context.Cause(ctx).Error())...)
			return
		}
		l.Error("failed", append(attrs, "error", e.Err.Error())...)
	case executor.Warning:
		l.Warn("warning", attrs...)
	case executor.StepStarted, executor.StepProgress, executor.StepSkipped:
	}
}

// failed writes why a pass could not be made; the failure of a step has been written.
func (l *logger) failed(p *passed) {
	switch {
	case p.err == nil || p.superseded() || p.cut:
		delete(l.failures, p.pass.Ref)
	case l.failures[p.pass.Ref] != p.err.Error():
		l.failures[p.pass.Ref] = p.err.Error()
		l.Error("pass failed", "pod", p.pass.Ref.String(), "error", p.err.Error())
	}
}

// held writes what holds a pod and is looked at again and again: once, when it changes, and that it is over.
func (l *logger) held(p *passed) {
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
		l.Info("no longer held", "pod", ref.String())
		return
	}
	l.holds[ref] = now
	for _, text := range now {
		if !slices.Contains(before, text) {
			l.Warn("held", "pod", ref.String(), "because", text)
		}
	}
}

// tellProblems writes the problems of sources that are new, which it returns, and those that have gone.
func (l *logger) tellProblems(now []sources.Problem) (news []sources.Problem) {
	current := map[toldProblem]bool{}
	for _, one := range now {
		p := toldProblem{one.File, one.Text}
		current[p] = true
		if !l.problems[p] {
			l.Warn("source", "file", p.file, "problem", p.text)
			news = append(news, one)
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(l.problems), toldProblem.compare) {
		if !current[p] {
			l.Info("source", "file", p.file, "mended", p.text)
		}
	}
	l.problems = current
	return news
}

// tellNotes writes what has no effect in the texts of a source, each once while it is there.
func (l *logger) tellNotes(source string, notes []string) {
	now := map[string]bool{}
	for _, text := range notes {
		if now[text] = true; !l.notes[source][text] {
			l.Info("source", "note", text)
		}
	}
	l.notes[source] = now
}

// tellTakeovers writes what files have taken over from what was applied by hand, each once.
func (l *logger) tellTakeovers(source string, takeovers []sources.Problem) {
	now := map[toldProblem]bool{}
	for _, one := range takeovers {
		p := toldProblem{one.File, one.Text}
		if now[p] = true; !l.takeovers[source][p] {
			l.Warn("source", "file", p.file, "note", p.text)
		}
	}
	l.takeovers[source] = now
}

// unreadable writes which checkpoints cannot be read, each once.
func (l *logger) unreadable(errs map[types.UID]error) {
	for _, uid := range slices.Sorted(maps.Keys(errs)) {
		if text := errs[uid].Error(); !l.records[text] {
			l.records[text] = true
			l.Error("checkpoint", "error", text)
		}
	}
}
