package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// summaryPart is the name of the part of docs/benchmarks.md that summary writes.
const summaryPart = "results"

// benchmark is one benchmark of a page of tables: its ratios and its target.
type benchmark struct {
	// name is the name in the table, and what describes it. The idle usage has only a name.
	name, what string
	// ratios has podctl's time divided by that of others, by their names in the table.
	ratios map[string]string
	// target is the limit and verdict the result. Both are empty for a benchmark without a target.
	target, verdict string
}

var (
	// noteOf matches the note of a benchmark: its name, what it measures, and its target.
	noteOf = regexp.MustCompile(`^\* ([\w-]+): ([^;]*).*?(?:; (target .*))?$`)
	// targetOf matches a target: its limit, its unit or what it is compared with, the measured value and the verdict.
	targetOf = regexp.MustCompile(`^target ≤ (\S+) (.*): (\S+), (met|not met)$`)
	// comparedOf matches a target that is a ratio of the idle usage of the agent and a kubelet.
	comparedOf = regexp.MustCompile(`^times the (.*) of a kubelet (with .*)$`)
	// absoluteOf matches a target for the idle usage of the agent alone.
	absoluteOf = regexp.MustCompile(`^(\S+) of (.*)$`)
)

// competitors are the columns of the summary, with the beginning of the names that they have in the tables.
func competitors() []string { return []string{"floor", "crictl", "podman", "a kubelet"} }

// summary returns the ratios and targets of a page of tables, one row for each benchmark.
func summary(tables string) string {
	var b strings.Builder
	b.WriteString("| benchmark | floor | crictl | podman | a kubelet | target | |\n|---|---|---|---|---|---|---|\n")
	for _, m := range benchmarksOf(tables) {
		if m.target == "" && len(m.ratios) == 0 {
			continue
		}
		b.WriteString("| " + m.name)
		if m.what != "" {
			b.WriteString(": " + m.what)
		}
		b.WriteString(" |")
		for _, name := range competitors() {
			fmt.Fprintf(&b, " %s |", m.ratios[name])
		}
		fmt.Fprintf(&b, " %s | %s |\n", m.target, m.verdict)
	}
	return b.String()
}

// benchmarksOf reads a page that report.page wrote.
func benchmarksOf(tables string) (all []benchmark) {
	ratios, name := map[string]map[string]string{}, ""
	for line := range strings.Lines(tables) {
		line = strings.TrimSpace(line)
		if cells := cellsOf(line); len(cells) == 7 && strings.HasSuffix(cells[6], "×") {
			addRatio(ratios[name], cells[1], cells[6])
		} else if len(cells) == 7 {
			name = cells[0]
			ratios[name] = map[string]string{}
		}
		if target, found := strings.CutPrefix(line, "* target "); found {
			all = append(all, idleBenchmark("target "+target))
		} else if note := noteOf.FindStringSubmatch(line); note != nil && ratios[note[1]] != nil {
			m := benchmark{name: "`" + note[1] + "`", what: note[2], ratios: ratios[note[1]]}
			m.judge(note[3])
			all = append(all, m)
		}
	}
	return all
}

// cellsOf returns the cells of a row of a table; nil if the line is none.
func cellsOf(line string) []string {
	if !strings.HasPrefix(line, "| ") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// addRatio adds a ratio to the column of a contender. Containers side by side replace the floor one by one, because
// podctl starts containers side by side, too.
func addRatio(ratios map[string]string, contender, ratio string) {
	i := slices.IndexFunc(competitors(), func(name string) bool { return strings.HasPrefix(contender, name) })
	if i >= 0 {
		ratios[competitors()[i]] = ratio
	}
}

// judge sets the target and the verdict. A target that is no ratio shows the measured value.
func (m *benchmark) judge(text string) {
	t := targetOf.FindStringSubmatch(text)
	if t == nil {
		return
	}
	limit, unit, measured, verdict := t[1], t[2], t[3], t[4]
	m.target, m.verdict = "≤ "+limit, verdict
	if !strings.HasPrefix(unit, "times ") {
		m.target, m.verdict = m.target+" "+unit, measured+", "+verdict
	}
}

// idleBenchmark returns a target for the idle usage of the agent.
func idleBenchmark(text string) benchmark {
	m := benchmark{ratios: map[string]string{}}
	m.judge(text)
	t := targetOf.FindStringSubmatch(text)
	if t == nil {
		return m
	}
	if compared := comparedOf.FindStringSubmatch(t[2]); compared != nil {
		m.name = "idle: " + compared[1] + " " + compared[2]
		m.ratios["a kubelet"] = t[3] + "×"
	} else if absolute := absoluteOf.FindStringSubmatch(t[2]); absolute != nil {
		m.name, m.target = "idle: "+absolute[2], "≤ "+t[1]+" "+absolute[1]
	}
	return m
}
