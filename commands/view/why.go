package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/why"
)

// Explanation writes explanations of pods as text.
type Explanation struct {
	Out    io.Writer
	Colors terminal.Colors
	Now    time.Time
}

// Write writes one explanation.
func (v *Explanation) Write(e *why.Explanation) error {
	var b strings.Builder
	b.WriteString(v.Colors.Bold(terminal.PrintableLine(headline(e))) + "\n")
	for i := range e.Subjects {
		v.writeSubject(&b, &e.Subjects[i])
	}
	if e.Next != nil {
		v.writeNext(&b, e.Next)
	}
	if _, err := io.WriteString(v.Out, b.String()); err != nil {
		return err
	}
	return v.writeHistory(e)
}

// headline describes the pod in the terms of its source.
func headline(e *why.Explanation) string {
	parts := []string{"Pod " + e.Pod.String(), "uid " + string(e.Pod.UID)}
	if e.Gone {
		return strings.Join(append(parts, "deleted"), " · ")
	}
	o := e.Object
	parts = append(parts, o.Phase, "source "+cmp.Or(o.Source, table.NoValue))
	if o.Generation != 0 {
		parts = append(parts, fmt.Sprintf("generation %d, observedGeneration %d", o.Generation, o.ObservedGeneration))
	}
	return strings.Join(parts, " · ")
}

// writeSubject writes a state with its causes, and what would change them.
func (v *Explanation) writeSubject(b *strings.Builder, s *why.Subject) {
	name, state := "pod", s.State
	if s.Container != "" {
		name = s.Container
		if s.ContainerType != podspec.Regular {
			name = string(s.ContainerType) + " " + name
		}
	}
	if s.Since != nil && !s.Since.IsZero() {
		state += " for " + duration.HumanDuration(v.Now.Sub(*s.Since))
	}
	fmt.Fprintf(b, "\n%s: %s\n", terminal.PrintableLine(name), terminal.PrintableLine(state))
	for i := range s.Causes {
		c := &s.Causes[i]
		fmt.Fprintf(b, "  %s\n", terminal.PrintableLine(v.causeText(c)))
		if len(c.Changes) > 0 {
			line := terminal.PrintableLine("changes with: " + strings.Join(c.Changes, "; "))
			fmt.Fprintf(b, "    %s\n", v.Colors.Dim(line))
		}
	}
}

func (v *Explanation) causeText(c *why.Cause) string {
	text := c.Message
	if c.Reason != "" {
		text = string(c.Reason) + ": " + text
	}
	if c.Until != nil {
		text += fmt.Sprintf(" (until %s, in %s)", c.Until.Local().Format(time.TimeOnly),
			max(c.Until.Sub(v.Now), 0).Round(time.Second))
	}
	return text
}

// writeNext writes what the next pass does.
func (v *Explanation) writeNext(b *strings.Builder, n *why.Next) {
	by := "podctl apply makes it, because no agent keeps the pod"
	switch {
	case n.By != why.ByAgent:
	case n.Running != "":
		by = "the agent makes a pass now"
	case n.At != nil:
		by = fmt.Sprintf("by the agent in %s, or at the next event", max(n.At.Sub(v.Now), 0).Round(time.Second))
	default:
		by = "by the agent at the next event"
	}
	fmt.Fprintf(b, "\nnext pass: %s\n", terminal.PrintableLine(by))
	switch {
	case n.Plan != nil:
		fmt.Fprintf(b, "  %s\n", terminal.PrintableLine(NextApply(n.Plan)))
	case n.Error != "":
		fmt.Fprintf(b, "  not known: %s\n", terminal.PrintableLine(n.Error))
	}
}

// historyRow is a decision or an event of a history.
type historyRow struct {
	at    time.Time
	cells []string
}

// writeHistory writes the decisions and the events, the newest first.
func (v *Explanation) writeHistory(e *why.Explanation) error {
	var rows []historyRow
	for i := range e.Decisions {
		rows = append(rows, v.decisionRow(&e.Decisions[i]))
	}
	for i := range e.Events {
		ev := &e.Events[i]
		rows = append(rows, historyRow{ev.Last, []string{
			LastSeen(v.Now, ev), cmp.Or(ev.Container, "pod"), ev.Reason, ev.Message,
		}})
	}
	if len(rows) == 0 {
		_, err := io.WriteString(v.Out, "\nno decisions are recorded\n")
		return err
	}
	slices.SortStableFunc(rows, func(a, b historyRow) int { return b.at.Compare(a.at) })
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		cells = append(cells, r.cells)
	}
	if _, err := io.WriteString(v.Out, "\n"); err != nil {
		return err
	}
	return table.Write(v.Out, []string{"LAST SEEN", "OBJECT", "DECISION", "BECAUSE"}, cells)
}

func (v *Explanation) decisionRow(d *state.Decision) historyRow {
	seen := LastSeen(v.Now, &state.PodEvent{Count: d.Count, First: d.First, Last: d.Last})
	because := d.Message
	if d.Reason != "" {
		because = string(d.Reason) + ": " + because
	}
	if d.Error != "" {
		because = fmt.Sprintf("%s (%s)", d.Error, because)
	}
	return historyRow{d.Last, []string{seen, decisionObject(d), decisionText(d), because}}
}

// decisionObject returns the name of the object of a decision.
func decisionObject(d *state.Decision) string {
	s := plan.Step{Kind: plan.Kind(d.Kind)}
	return cmp.Or(d.Container, s.Object(), "pod")
}

// decisionText returns what was decided.
func decisionText(d *state.Decision) string {
	text := plan.Kind(d.Kind).Verb()
	switch {
	case d.Kind == state.Held:
		text = "hold"
	case d.Kind == state.Drift:
		text = "found"
	case d.Kind == string(plan.StartContainer) && d.Attempt > 0:
		text = fmt.Sprintf("restart (attempt %d)", d.Attempt)
	}
	if d.Error != "" {
		text += " failed"
	}
	return text
}
