package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime/plan"
)

// toDo counts the future actions of a plan.
func toDo(p *plan.Plan) []string {
	return summary(p, func(future, _ string) string { return future })
}

// done counts the completed actions of a plan.
func done(p *plan.Plan) []string {
	return summary(p, func(_, past string) string { return past })
}

func summary(p *plan.Plan, tense func(future, past string) string) []string {
	var parts []string
	add := func(n int, noun, future, past string) {
		switch {
		case n > 0 && noun != "":
			parts = append(parts, Count(n, noun)+" "+tense(future, past))
		case n > 0:
			parts = append(parts, fmt.Sprintf("%d %s", n, tense(future, past)))
		}
	}
	s := &p.Summary
	if p.Adopts {
		add(1, "pod", "to adopt", "adopted")
	}
	add(s.Replace, "", "to replace", "replaced")
	add(s.Start, "", "to start", "started")
	add(s.Prepare, "", "to prepare", "prepared")
	add(s.Stop, "", "to stop", "stopped")
	add(s.Update, "", "to update", "updated")
	add(s.Remove, "", "to remove", "removed")
	add(s.CleanUp, "", "to clean up", "cleaned up")
	add(s.Rotate, "log", "to rotate", "rotated")
	add(s.Record, "field", "to record", "recorded")
	add(s.Hold, "", "held", "held")
	add(unchanged(p), "", "unchanged", "unchanged")
	return parts
}

// unchanged counts the objects that are kept, and neither held nor updated.
func unchanged(p *plan.Plan) int {
	n := p.Summary.Keep
	for i := range p.Keeps {
		if o := p.Object(p.Keeps[i].Container); o != nil && o.Action != plan.Kept {
			n--
		}
	}
	return n
}

// summaryLine counts the future actions of a plan in one sentence.
func summaryLine(p *plan.Plan) string {
	switch idle := len(p.Steps)+len(p.Holds) == 0; {
	case idle && p.Complete && len(p.Record) == 0 && p.Adopts:
		return fmt.Sprintf("No changes to the running containers; apply adopts the pod (%d unchanged).", unchanged(p))
	case idle && p.Records():
		return "Plan: " + strings.Join(toDo(p), ", ") + ". Nothing restarts."
	case idle && p.Complete && p.Source != "":
		return fmt.Sprintf("No changes to the applied version (%d unchanged). The source file has changed since.",
			unchanged(p))
	case idle && p.Complete:
		return fmt.Sprintf("No changes. The pod matches the manifest (%d unchanged).", unchanged(p))
	case idle:
		return "Nothing to do now."
	}
	return "Plan: " + strings.Join(toDo(p), ", ") + "."
}

// Outcome describes the result of an executed plan.
func Outcome(p *plan.Plan) string {
	recorded := p.Records()
	switch {
	case len(p.Steps) == 0 && p.Complete && recorded:
		return "applied: " + strings.Join(done(p), ", ")
	case len(p.Steps) == 0 && p.Complete:
		return "unchanged"
	case len(p.Steps) == 0 && len(p.Holds) > 0:
		return withRecorded(p, "held: "+holds(p))
	case len(p.Steps) == 0:
		return withRecorded(p, waits(p))
	}
	text := "applied: " + strings.Join(done(p), ", ")
	if left := Left(p); left != "" {
		text += "; " + left
	}
	return text
}

// Left describes what remains after the steps of a plan: holds with their reasons, waits, and later actions.
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

// withRecorded adds the number of recorded fields of a pass without steps.
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

// NextApply describes the future actions of a plan in a few words.
func NextApply(p *plan.Plan) string {
	parts := slices.DeleteFunc(toDo(p), func(part string) bool { return strings.HasSuffix(part, " unchanged") })
	text := cmp.Or(strings.Join(parts, ", "), "nothing to do")
	if len(parts) > 0 {
		text += " (see podctl plan)"
	}
	return text
}
