package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime/plan"
)

// tense says what is counted: what a plan would do, or what was done.
type tense struct{ adopt, replace, start, prepare, stop, update, remove, cleanUp, rotate, record string }

// future says what a plan would do, past what was done.
func future() *tense {
	return &tense{
		adopt: "to adopt", replace: "to replace", start: "to start", prepare: "to prepare", stop: "to stop", update: "to update",
		remove: "to remove", cleanUp: "to clean up", rotate: "to rotate", record: "to record",
	}
}

func past() *tense {
	return &tense{
		adopt: "adopted", replace: "replaced", start: "started", prepare: "prepared", stop: "stopped", update: "updated",
		remove: "removed", cleanUp: "cleaned up", rotate: "rotated", record: "recorded",
	}
}

// summary counts what a plan does, in the words of a tense.
func summary(p *plan.Plan, t *tense) []string {
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, text))
		}
	}
	s := &p.Summary
	if p.Adopts {
		parts = append(parts, "1 pod "+t.adopt)
	}
	add(s.Replace, t.replace)
	add(s.Start, t.start)
	add(s.Prepare, t.prepare)
	add(s.Stop, t.stop)
	add(s.Update, t.update)
	add(s.Remove, t.remove)
	add(s.CleanUp, t.cleanUp)
	if s.Rotate > 0 {
		parts = append(parts, Count(s.Rotate, "log")+" "+t.rotate)
	}
	if s.Record > 0 {
		parts = append(parts, Count(s.Record, "field")+" "+t.record)
	}
	add(s.Hold, "held")
	add(unchanged(p), "unchanged")
	return parts
}

// unchanged counts what stays and is neither held nor updated.
func unchanged(p *plan.Plan) int {
	n := p.Summary.Keep
	for i := range p.Keeps {
		if o := p.Object(p.Keeps[i].Container); o != nil && o.Action != plan.Kept {
			n--
		}
	}
	return n
}

// summaryLine counts what a plan would do.
func summaryLine(p *plan.Plan) string {
	switch idle := len(p.Steps)+len(p.Holds) == 0; {
	case idle && p.Complete && len(p.Record) == 0 && p.Adopts:
		return fmt.Sprintf("No changes to what runs; apply adopts the pod (%d unchanged).", unchanged(p))
	case idle && p.Records():
		return "Plan: " + strings.Join(summary(p, future()), ", ") + ". Nothing restarts."
	case idle && p.Complete && p.Source != "":
		return fmt.Sprintf("No changes of what was applied (%d unchanged); its source file has changed.", unchanged(p))
	case idle && p.Complete:
		return fmt.Sprintf("No changes. The pod is as the manifest says (%d unchanged).", unchanged(p))
	case idle:
		return "Nothing to do now."
	}
	return "Plan: " + strings.Join(summary(p, future()), ", ") + "."
}

// Outcome says what became of a plan that was executed.
func Outcome(p *plan.Plan) string {
	recorded := p.Records()
	switch {
	case len(p.Steps) == 0 && p.Complete && recorded:
		return "applied: " + strings.Join(summary(p, past()), ", ")
	case len(p.Steps) == 0 && p.Complete:
		return "unchanged"
	case len(p.Steps) == 0 && len(p.Holds) > 0:
		return withRecorded(p, "held: "+holds(p))
	case len(p.Steps) == 0:
		return withRecorded(p, waits(p))
	}
	text := "applied: " + strings.Join(summary(p, past()), ", ")
	if left := Left(p); left != "" {
		text += "; " + left
	}
	return text
}

// Left says what the steps of a plan leave: what is held and why, what only time brings, and what
// a later pass comes to.
func Left(p *plan.Plan) string {
	var parts []string
	if len(p.Holds) > 0 {
		parts = append(parts, holds(p))
	}
	if len(p.WaitingFor) > 0 {
		parts = append(parts, waits(p))
	}
	if len(p.Later) > 0 {
		parts = append(parts, "later "+p.Later[0])
	}
	return strings.Join(parts, "; ")
}

func waits(p *plan.Plan) string { return "waits for " + strings.Join(p.WaitingFor, ", ") }

// withRecorded adds how much a pass without steps has recorded.
func withRecorded(p *plan.Plan, text string) string {
	if len(p.Record) == 0 {
		return text
	}
	return text + "; " + Count(len(p.Record), "field") + " recorded"
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
func NextApply(p *plan.Plan) string {
	parts := slices.DeleteFunc(summary(p, future()), func(part string) bool { return strings.HasSuffix(part, " unchanged") })
	text := cmp.Or(strings.Join(parts, ", "), "nothing to do")
	if len(parts) > 0 {
		text += " (see podctl plan)"
	}
	return text
}
