package view

import (
	"fmt"
	"strings"

	"github.com/podctl/podctl/runtime/plan"
)

// tense says what is counted: what a plan would do, or what was done.
type tense struct{ replace, start, stop, update, remove string }

// summary counts what a plan does, in the words of a tense.
func summary(s *plan.Summary, t *tense) []string {
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(s.Replace, t.replace)
	add(s.Start, t.start)
	add(s.Stop, t.stop)
	add(s.Update, t.update)
	add(s.Remove, t.remove)
	add(s.Hold, "held")
	add(s.Keep, "unchanged")
	return parts
}

// summaryLine counts what a plan would do.
func summaryLine(p *plan.Plan) string {
	if len(p.Steps) == 0 && len(p.Holds) == 0 {
		if p.Complete {
			return fmt.Sprintf("No changes. The pod is as the manifest says (%d unchanged).", p.Summary.Keep)
		}
		return "Nothing to do now."
	}
	parts := summary(&p.Summary, &tense{replace: "to replace", start: "to start", stop: "to stop", update: "to update", remove: "to remove"})
	return "Plan: " + strings.Join(parts, ", ") + "."
}

// Outcome says what became of a plan that was executed.
func Outcome(p *plan.Plan) string {
	switch {
	case len(p.Steps) == 0 && p.Complete:
		return "unchanged"
	case len(p.Steps) == 0 && len(p.Holds) > 0:
		return "held: " + holds(p)
	case len(p.Steps) == 0:
		return "waits for " + strings.Join(p.WaitingFor, ", ")
	}
	parts := summary(&p.Summary, &tense{replace: "replaced", start: "started", stop: "stopped", update: "updated", remove: "removed"})
	text := "applied: " + strings.Join(parts, ", ")
	if len(p.Later) > 0 {
		text += "; later " + p.Later[0]
	}
	return text
}

func holds(p *plan.Plan) string {
	var texts []string
	for i := range p.Holds {
		h := &p.Holds[i]
		texts = append(texts, strings.TrimSpace(h.Container+" "+holdAction(h)+" ("+holdComment(h)+")"))
	}
	return strings.Join(texts, ", ")
}

// NextApply says in a few words what a plan would do.
func NextApply(s *plan.Summary) string {
	var parts []string
	for _, one := range []struct {
		count int
		what  string
	}{{s.Start, "to start"}, {s.Stop, "to stop"}, {s.Replace, "to replace"}, {s.Update, "to update"}, {s.Remove, "to remove"}, {s.Hold, "held"}} {
		if one.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.count, one.what))
		}
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return strings.Join(parts, ", ") + " (see podctl plan)"
}
