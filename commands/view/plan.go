package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
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

// Plan writes plans as text.
type Plan struct {
	Out    io.Writer
	Colors terminal.Colors
	// Unchanged also shows unchanged objects in a plan without changes.
	Unchanged bool
	// Width is the number of columns, or 0 for no limit. A comment that does not fit beside its row is written below
	// it.
	Width int
	// Printed has the remarks that were already printed, so that they are not repeated. If nil, all are repeated.
	Printed map[string]bool
}

// planRow is one object of a plan: its symbol, its action with the reason, and the steps of the action.
type planRow struct {
	symbol, name, action, comment string
	// field is a changed field. It replaces the name and the action.
	field   string
	details []planDetail
}

// planDetail is a line below a row, with lines that belong to it.
type planDetail struct {
	text, comment string
	lines         []diffLine
}

// Write writes one plan.
func (v *Plan) Write(p *plan.Plan) error {
	var b strings.Builder
	b.WriteString(v.header(p) + "\n")
	rows := v.rows(p)
	if len(p.Steps)+len(p.Holds)+len(p.Record) == 0 && !v.Unchanged {
		rows = nil
	}
	if len(rows) > 0 {
		b.WriteString("\n")
		v.writeRows(&b, rows)
	}
	v.writeLines(&b, p)
	b.WriteString("\n" + v.Colors.Bold(summaryLine(p)) + "\n")
	return table.WriteTrimmed(v.Out, b.String())
}

func (v *Plan) header(p *plan.Plan) string {
	runtime := strings.TrimSpace(p.Runtime.Name + " " + strings.TrimPrefix(p.Runtime.Version, "v"))
	parts := append([]string{"Pod " + p.Pod.String()}, originParts(p)...)
	parts = append(parts, runtime)
	if p.SandboxID != "" && !p.CreateSandbox {
		parts = append(parts, "sandbox "+model.ShortID(p.SandboxID)+sandboxIPs(p))
	}
	return v.Colors.Bold(terminal.PrintableLine(strings.Join(parts, " · ")))
}

// originParts describes a pod of the API server in the terms of its object.
func originParts(p *plan.Plan) []string {
	o := p.Origin
	if o == nil {
		return nil
	}
	generation := fmt.Sprintf("generation %d", o.Generation)
	if o.ObservedGeneration != 0 && o.ObservedGeneration != o.Generation {
		generation = fmt.Sprintf("generation %d -> %d", o.ObservedGeneration, o.Generation)
	}
	return []string{"source " + o.Source, "uid " + string(p.Pod.UID), generation}
}

// sandboxIPs returns the addresses of the sandbox that the plan keeps.
func sandboxIPs(p *plan.Plan) string {
	for i := range p.Keeps {
		if k := &p.Keeps[i]; k.Container == "" && len(k.IPs) > 0 {
			return ", " + strings.Join(k.IPs, ", ")
		}
	}
	return ""
}

// writeRows writes the rows as a table. Only cells with another cell after them widen a column.
func (v *Plan) writeRows(b *strings.Builder, rows []planRow) {
	nameWidth, actionWidth := 8, 8
	for _, r := range rows {
		nameWidth = max(nameWidth, len([]rune(r.name)))
		if r.comment != "" {
			actionWidth = max(actionWidth, len([]rune(r.action)))
		}
	}
	for _, r := range rows {
		r = r.clean()
		line := fmt.Sprintf("%3s %s  %s", r.symbol, padded(r.name, nameWidth), padded(r.action, actionWidth))
		if r.field != "" {
			line = fmt.Sprintf("%3s %s", r.symbol, r.field)
		}
		v.writeLine(b, line, strings.TrimRight(line, " "), r)
		for _, d := range r.details {
			v.writeDetail(b, d)
		}
	}
}

// writeLine writes a row with its comment.
func (v *Plan) writeLine(b *strings.Builder, line, text string, r planRow) {
	b.WriteString(paintSymbol(v.Colors, r.symbol, text))
	if r.comment == "" {
		b.WriteString("\n")
		return
	}
	if v.Width == 0 || displaywidth.String(line+"  # "+r.comment) <= v.Width {
		b.WriteString(strings.Repeat(" ", len([]rune(line))-len([]rune(text))))
		b.WriteString(v.Colors.Dim("  # "+r.comment) + "\n")
		return
	}
	b.WriteString("\n")
	v.writeBelow(b, r.comment)
}

// commentIndent begins a comment below its row.
const commentIndent = "      # "

// writeBelow writes a comment below its row, in as many lines as needed.
func (v *Plan) writeBelow(b *strings.Builder, comment string) {
	for line := range strings.Lines(terminal.Wrap(comment, v.Width-len(commentIndent))) {
		b.WriteString(v.Colors.Dim(commentIndent+strings.TrimRight(line, "\n")) + "\n")
	}
}

func (v *Plan) writeDetail(b *strings.Builder, d planDetail) {
	switch {
	case d.comment != "" && v.Width > 0 && displaywidth.String("      "+d.text+"  # "+d.comment) > v.Width:
		b.WriteString("      " + d.text + "\n")
		v.writeBelow(b, d.comment)
	case d.comment != "":
		b.WriteString("      " + d.text + v.Colors.Dim("  # "+d.comment) + "\n")
	case d.text != "":
		b.WriteString("      " + d.text + "\n")
	}
	for _, line := range d.lines {
		b.WriteString("        " + line.paint(v.Colors) + "\n")
	}
}

// clean makes texts from manifests and runtimes safe to print.
func (r planRow) clean() planRow {
	r.name = terminal.PrintableLine(r.name)
	r.action = terminal.PrintableLine(r.action)
	r.comment = terminal.PrintableLine(r.comment)
	r.field = terminal.PrintableLine(r.field)
	details := make([]planDetail, 0, len(r.details))
	for _, d := range r.details {
		clean := planDetail{text: terminal.PrintableLine(d.text), comment: terminal.PrintableLine(d.comment)}
		for _, line := range d.lines {
			clean.lines = append(clean.lines, diffLine{line.mark, terminal.PrintableLine(line.text)})
		}
		details = append(details, clean)
	}
	r.details = details
	return r
}

func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(width-len([]rune(text)), 0))
}

func (v *Plan) writeLines(b *strings.Builder, p *plan.Plan) {
	var lines []string
	for _, text := range p.Later {
		lines = append(lines, v.Colors.Dim("later: "+terminal.PrintableLine(text)))
	}
	for _, text := range p.WaitingFor {
		lines = append(lines, "waiting for "+terminal.PrintableLine(text))
	}
	for _, text := range remarks(p) {
		if v.Printed[text] {
			continue
		}
		if v.Printed != nil {
			v.Printed[text] = true
		}
		lines = append(lines, terminal.PrintableLine(text))
	}
	if len(lines) > 0 {
		b.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	}
}

// Remarks returns the remarks of a plan, including the notes on when edits take effect. It is for output without the
// rows of the plan.
func Remarks(p *plan.Plan) []string { return append(remarks(p), effectNotes(p)...) }

func remarks(p *plan.Plan) []string {
	var lines []string
	for _, text := range p.Drift {
		lines = append(lines, "drift: "+text)
	}
	for _, text := range p.Notes {
		lines = append(lines, "note: "+text)
	}
	if p.Source != "" {
		lines = append(lines, "source: "+p.Source)
	}
	return lines
}

// paintSymbol colours text like terraform: green for create, red for stop, yellow for change.
func paintSymbol(p terminal.Colors, symbol, text string) string {
	switch symbol {
	case symbolCreate:
		return p.Green(text)
	case symbolStop:
		return p.Red(text)
	case symbolReplace, symbolUpdate:
		return p.Yellow(text)
	case symbolHold:
		return p.Cyan(text)
	}
	return p.Dim(text)
}
