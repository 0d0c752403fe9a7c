package view

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/plan/diff"
)

// The limits for changes in a plan. Lengths are in characters, the others are numbers of lines, fields or list entries.
const (
	maxComment  = 100
	maxValue    = 64
	valueMargin = 16
	maxLines    = 20
	// maxCompared limits the lines of a text that are compared, because matching takes up to the cube of their number.
	maxCompared = 200
	contextSize = 2
	maxFields   = 20
	maxEntries  = 2
)

// change is a differing field in the form of a plan: on one line, or with the differing lines below it.
type change struct {
	text  string
	lines []diffLine
}

// diffLine is a line of a unified diff: removed, added, or context.
type diffLine struct{ mark, text string }

const (
	markBefore = "- "
	markAfter  = "+ "
	markSame   = "  "
)

// paint returns the line in the colour of its mark.
func (l diffLine) paint(colors terminal.Colors) string {
	switch text := l.mark + l.text; l.mark {
	case markBefore:
		return colors.Red(text)
	case markAfter:
		return colors.Green(text)
	default:
		return colors.Dim(text)
	}
}

// changesOf converts changes to the form of a plan.
func changesOf(list []diff.Change) []change {
	var shown []change
	for _, c := range list {
		for _, one := range entryChanges(c) {
			shown = append(shown, changeOf(one))
		}
	}
	return shown
}

// entryChanges splits the change of a list into changes of its entries. It does so if the length is the same and at
// most maxEntries differ.
func entryChanges(c diff.Change) []diff.Change {
	before, after := listOf(c.Before), listOf(c.After)
	if len(before) != len(after) {
		return []diff.Change{c}
	}
	var entries []diff.Change
	for i := range before {
		if before[i] != after[i] {
			path := fmt.Sprintf("%s[%d]", c.Path, i)
			entries = append(entries, diff.Change{Path: path, Before: before[i], After: after[i]})
		}
	}
	if len(entries) == 0 || len(entries) > maxEntries {
		return []diff.Change{c}
	}
	return entries
}

// listOf parses a list of strings. It returns nil for other values.
func listOf(value string) []string {
	var list []string
	if !strings.HasPrefix(value, "[") || json.Unmarshal([]byte(value), &list) != nil {
		return nil
	}
	return list
}

func changeOf(c diff.Change) change {
	if c.Sensitive {
		return change{text: c.Path + ": (secret changed)"}
	}
	before, after := strings.TrimSuffix(c.Before, "\n"), strings.TrimSuffix(c.After, "\n")
	if strings.Contains(before, "\n") || strings.Contains(after, "\n") {
		return change{text: c.Path + ":", lines: lineChanges(before, after)}
	}
	before, after = c.Before, c.After
	long := len([]rune(before)) > maxValue || len([]rune(after)) > maxValue
	if long {
		before, after = aroundChange([]rune(before), []rune(after))
	}
	switch {
	case c.Before == "":
		return change{text: fmt.Sprintf("%s: + %s", c.Path, after)}
	case c.After == "":
		return change{text: fmt.Sprintf("%s: - %s", c.Path, before)}
	case long:
		return change{text: c.Path + ":", lines: []diffLine{{markBefore, before}, {markAfter, after}}}
	}
	return change{text: fmt.Sprintf("%s: %s -> %s", c.Path, before, after)}
}

// aroundChange returns the differing parts of two long values with a margin around them.
func aroundChange(before, after []rune) (was, is string) {
	begin, end := shared(before, after)
	return part(before, begin, end), part(after, begin, end)
}

// shared returns the lengths of the common prefix and suffix of two lists.
func shared[T comparable](a, b []T) (begin, end int) {
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		begin++
	}
	for end < min(len(a), len(b))-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return begin, end
}

// part returns the part of a value that differs, with a margin around it.
func part(value []rune, begin, end int) string {
	from, to := max(begin-valueMargin, 0), len(value)-max(end-valueMargin, 0)
	text := value[from:to]
	head, tail := "", ""
	if from > 0 {
		head = "…"
	}
	if to < len(value) {
		tail = "…"
	}
	if len(text) > 2*maxValue {
		text, tail = text[:2*maxValue], "…"
	}
	return head + string(text) + tail
}

// lineChanges returns the differing lines of two texts with a few lines of context.
func lineChanges(before, after string) []diffLine {
	a, b, cut := comparedLines(linesOf(before), linesOf(after))
	var lines []diffLine
	for i, group := range difflib.NewMatcher(a, b).GetGroupedOpCodes(contextSize) {
		if i > 0 {
			lines = append(lines, diffLine{"", "…"})
		}
		for _, op := range group {
			if op.Tag == 'e' {
				lines = append(lines, marked(markSame, a[op.I1:op.I2])...)
				continue
			}
			lines = append(append(lines, marked(markBefore, a[op.I1:op.I2])...), marked(markAfter, b[op.J1:op.J2])...)
		}
	}
	if len(lines) == 0 {
		return []diffLine{{"", "(white space at the end)"}}
	}
	switch left := len(lines) - maxLines; {
	case cut:
		lines = append(lines[:min(maxLines, len(lines))], diffLine{"", "… (more lines differ)"})
	case left > 0:
		lines = append(lines[:maxLines], diffLine{"", fmt.Sprintf("… (%d more lines)", left)})
	}
	return lines
}

// comparedLines drops equal lines far from the first and last difference, and limits the rest to maxCompared. cut
// reports whether lines beyond the limit were dropped.
func comparedLines(a, b []string) (first, second []string, cut bool) {
	begin, end := shared(a, b)
	begin, end = max(begin-contextSize, 0), max(end-contextSize, 0)
	a, b = a[begin:len(a)-end], b[begin:len(b)-end]
	return a[:min(len(a), maxCompared)], b[:min(len(b), maxCompared)], max(len(a), len(b)) > maxCompared
}

func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// marked prepends a mark to lines and cuts long lines.
func marked(mark string, lines []string) []diffLine {
	out := make([]diffLine, 0, len(lines))
	for _, line := range lines {
		if r := []rune(line); len(r) > maxComment {
			line = string(r[:maxComment]) + "…"
		}
		out = append(out, diffLine{mark, line})
	}
	return out
}

// explained adds the reason and the changes to a row: in its comment if they are short, and otherwise below.
func (r planRow) explained(why string, o *plan.Object) planRow {
	shown := changesOf(o.Changes)
	if len(shown) == 0 {
		r.comment = why
		return r
	}
	parts, short := make([]string, 0, len(shown)), true
	for _, c := range shown {
		parts, short = append(parts, c.text), short && len(c.lines) == 0
	}
	text := strings.Join(parts, ", ")
	if why != "" {
		why += ": "
	}
	if short && len([]rune(why+text)) <= maxComment {
		r.comment = why + text + unchangedText(o)
		return r
	}
	r.comment = why + Count(len(shown), "field") + " changed" + unchangedText(o)
	for i, c := range shown {
		if i == maxFields {
			rest := fmt.Sprintf("… and %d more (-o json has all)", len(shown)-i)
			r.details = append(r.details, planDetail{text: rest})
			break
		}
		r.details = append(r.details, c.detail())
	}
	return r
}

func unchangedText(o *plan.Object) string {
	if o.Unchanged == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d unchanged)", o.Unchanged)
}

func (c change) detail() planDetail { return planDetail{text: c.text, lines: c.lines} }

// recordRows returns rows for the edits that podctl only records.
func recordRows(p *plan.Plan) []planRow {
	var rows []planRow
	for i := range p.Record {
		e := &p.Record[i]
		for _, c := range changesOf([]diff.Change{e.Change}) {
			row := planRow{symbol: symbolUpdate, field: c.text, comment: effectText(e.TakesEffect)}
			if len(c.lines) > 0 {
				row.details = []planDetail{{lines: c.lines}}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// effectText describes when an edit takes effect.
func effectText(e plan.Effect) string {
	switch e {
	case plan.EffectLive:
		return "no restart"
	case plan.EffectNextStart:
		return "when a container starts next"
	case plan.EffectNewSandbox:
		return "only in a new sandbox"
	case plan.EffectNewPod:
		return "only in a new pod"
	case plan.EffectHeld:
		return "held"
	case plan.EffectNone:
	}
	return "no effect on running containers"
}

// effectNotes returns one line for each time at which edits take effect.
func effectNotes(p *plan.Plan) []string {
	var lines []string
	for _, when := range []struct {
		effect plan.Effect
		text   string
	}{
		{plan.EffectLive, "takes effect without a step"},
		{plan.EffectNextStart, "takes effect only when a container starts next"},
		{plan.EffectNewSandbox, "takes effect only in a new sandbox"},
		{plan.EffectNewPod, "takes effect only in a new pod"},
	} {
		var paths []string
		for i := range p.Record {
			if p.Record[i].TakesEffect == when.effect {
				paths = append(paths, p.Record[i].Path)
			}
		}
		if len(paths) > 0 {
			lines = append(lines, "note: "+when.text+": "+strings.Join(paths, ", "))
		}
	}
	return lines
}
