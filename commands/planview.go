package commands

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// The symbols of a plan.
const (
	symbolCreate  = "+"
	symbolStop    = "-"
	symbolReplace = "-/+"
	symbolUpdate  = "~"
	symbolHold    = "…"
	symbolKeep    = "="
)

// planView writes plans for people.
type planView struct {
	w     io.Writer
	paint painter
	now   time.Time
	// unchanged shows what stays also in a plan that changes nothing.
	unchanged bool
}

// planRow is one object of a plan: its symbol, what happens to it and why, and
// the steps behind it.
type planRow struct {
	symbol, name, action, comment string
	details                       []planDetail
}

type planDetail struct{ text, comment string }

// write prints one plan.
func (v *planView) write(p *plan.Plan) error {
	var b strings.Builder
	b.WriteString(v.header(p) + "\n")
	rows := v.rows(p)
	if len(p.Steps) == 0 && len(p.Holds) == 0 && !v.unchanged {
		rows = nil
	}
	if len(rows) > 0 {
		b.WriteString("\n")
		v.writeRows(&b, rows)
	}
	v.writeLines(&b, p)
	b.WriteString("\n" + v.paint.bold(summaryLine(p)) + "\n")
	return writeTrimmed(v.w, b.String())
}

func (v *planView) header(p *plan.Plan) string {
	parts := []string{"Pod " + p.Pod.String(), strings.TrimSpace(p.Runtime.Name + " " + strings.TrimPrefix(p.Runtime.Version, "v"))}
	if p.SandboxID != "" && !p.CreateSandbox {
		parts = append(parts, "sandbox "+model.ShortID(p.SandboxID)+sandboxIPs(p))
	}
	return v.paint.bold(printableLine(strings.Join(parts, " · ")))
}

// sandboxIPs are the addresses that the plan's kept sandbox has.
func sandboxIPs(p *plan.Plan) string {
	for i := range p.Keeps {
		if k := &p.Keeps[i]; k.Container == "" && k.Message != "" {
			return ", " + k.Message
		}
	}
	return ""
}

func (v *planView) writeRows(b *strings.Builder, rows []planRow) {
	nameWidth, actionWidth := 8, 8
	for _, r := range rows {
		nameWidth = max(nameWidth, len([]rune(r.name)))
		actionWidth = max(actionWidth, len([]rune(r.action)))
	}
	for _, r := range rows {
		r = r.clean()
		line := fmt.Sprintf("%3s %s  %s", r.symbol, padded(r.name, nameWidth), padded(r.action, actionWidth))
		b.WriteString(v.paint.symbol(r.symbol, strings.TrimRight(line, " ")))
		if r.comment != "" {
			b.WriteString(strings.Repeat(" ", max(len([]rune(line))-len([]rune(strings.TrimRight(line, " "))), 0)))
			b.WriteString(v.paint.dim("  # " + r.comment))
		}
		b.WriteString("\n")
		for _, d := range r.details {
			b.WriteString("      " + d.text)
			if d.comment != "" {
				b.WriteString(v.paint.dim("  # " + d.comment))
			}
			b.WriteString("\n")
		}
	}
}

// clean makes what comes from manifests and runtimes safe to print.
func (r planRow) clean() planRow {
	r.name, r.action, r.comment = printableLine(r.name), printableLine(r.action), printableLine(r.comment)
	details := make([]planDetail, 0, len(r.details))
	for _, d := range r.details {
		details = append(details, planDetail{text: printableLine(d.text), comment: printableLine(d.comment)})
	}
	r.details = details
	return r
}

func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(width-len([]rune(text)), 0))
}

func (v *planView) writeLines(b *strings.Builder, p *plan.Plan) {
	var lines []string
	for _, text := range p.Later {
		lines = append(lines, v.paint.dim("later: "+printableLine(text)))
	}
	for _, text := range p.WaitingFor {
		lines = append(lines, "waiting for "+printableLine(text))
	}
	for _, text := range remarks(p) {
		lines = append(lines, printableLine(text))
	}
	if len(lines) > 0 {
		b.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	}
}

// remarks are what a plan says and makes no step of.
func remarks(p *plan.Plan) []string {
	var lines []string
	for _, text := range p.Drift {
		lines = append(lines, "drift: "+text)
	}
	for _, text := range p.Notes {
		lines = append(lines, "note: "+text)
	}
	return lines
}

// summaryLine counts what the plan does.
func summaryLine(p *plan.Plan) string {
	if len(p.Steps) == 0 && len(p.Holds) == 0 {
		if p.Complete {
			return fmt.Sprintf("No changes. The pod is as the manifest says (%d unchanged).", p.Summary.Keep)
		}
		return "Nothing to do now."
	}
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(p.Summary.Replace, "to replace")
	add(p.Summary.Start, "to start")
	add(p.Summary.Stop, "to stop")
	add(p.Summary.Update, "to update")
	add(p.Summary.Remove, "to remove")
	add(p.Summary.Hold, "held")
	add(p.Summary.Keep, "unchanged")
	return "Plan: " + strings.Join(parts, ", ") + "."
}
