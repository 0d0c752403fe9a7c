package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Result is the result of one workload.
type Result struct {
	// What describes the workload.
	Name, What string
	Contenders []Figures
	// Target is zero for a workload without a target.
	Target Target
}

// Figures are the figures of one contender.
type Figures struct {
	Name string
	Runs int
	// Value is the time in milliseconds. That of an idle agent is in MiB for memory, and in milliseconds per second for
	// the processor.
	Value Spread
	// CPU is the median of user and system time in milliseconds. It is zero for calls of the bench itself.
	CPU float64
	// Ratio is the median, over all rounds, of the first contender's value divided by this one's.
	Ratio float64
}

// Spread is a median with its quartiles.
type Spread struct{ Median, Low, High float64 }

// Units of targets.
const (
	inMilliseconds = "milliseconds"
	inMebibytes    = "MiB"
	ofOneProcessor = "of one processor"
)

// Target is a limit for podctl: a value in a unit, or a ratio to another contender.
type Target struct {
	Unit, Against   string
	Limit, Measured float64
}

// times returns the limit for podctl as a multiple of the value of another contender.
func times(name string, most float64) Target { return Target{Against: name, Limit: most} }

// tables returns a table of all figures, with a description of the machine.
func tables(target, machine string, results []Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n"+
		"| | | runs | median | quartiles | CPU ms | the first is |\n"+
		"|---|---|---|---|---|---|---|\n", target)
	for _, r := range results {
		name := r.Name
		for _, f := range r.Contenders {
			cpu := "-"
			if f.CPU > 0 {
				cpu = fmt.Sprintf("%.1f", f.CPU)
			}
			fmt.Fprintf(&b, "| %s | %s | %d | %.1f | %.1f-%.1f | %s | %s |\n",
				name, f.Name, f.Runs, f.Value.Median, f.Value.Low, f.Value.High, cpu, r.ratio(f.Name))
			name = ""
		}
	}
	return b.String() + "\n" + machine
}

// summary returns a table of the ratios and targets.
func summary(results []Result) string {
	var b strings.Builder
	competitors := []string{floorName, "crictl", "podman", kubeletName}
	b.WriteString("| benchmark | " + strings.Join(competitors, " | ") + " | target | |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		if r.Target.Limit == 0 {
			continue
		}
		title := r.Name
		if r.What != "" {
			title = "`" + title + "`: " + r.What
		}
		fmt.Fprintf(&b, "| %s |", title)
		for _, name := range competitors {
			fmt.Fprintf(&b, " %s |", r.ratio(name))
		}
		fmt.Fprintf(&b, " %s |\n", r.Target.cells())
	}
	return b.String()
}

// ratio returns the ratio to a competitor.
func (r *Result) ratio(competitor string) (text string) {
	for _, f := range r.Contenders {
		if f.Ratio > 0 && strings.HasPrefix(f.Name, competitor) {
			text = fmt.Sprintf("%.3g×", f.Ratio)
		}
	}
	return text
}

// cells returns the limit, and whether it is met.
func (t *Target) cells() string {
	verdict := "not met"
	if t.Measured > 0 && t.Measured <= t.Limit {
		verdict = "met"
	}
	if t.Against != "" {
		return fmt.Sprintf("≤ %.4g | %s", t.Limit, verdict)
	}
	return fmt.Sprintf("≤ %.4g %s | %.3g, %s", t.Limit, t.Unit, t.Measured, verdict)
}

// save replaces a part of a page of the documentation.
func save(docs, page, name, part string) error {
	path := filepath.Join(docs, page)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := withPart(string(text), name, part)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(changed), 0o644) // a page that everybody may read
}

// withPart returns a page with one of its parts replaced.
func withPart(page, name, part string) (string, error) {
	begin, end := fmt.Sprintf("<!-- %s -->\n\n", name), fmt.Sprintf("\n<!-- end of %s -->\n", name)
	before, rest, begins := strings.Cut(page, begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return "", fmt.Errorf("the page has no part %q", name)
	}
	return before + begin + strings.TrimRight(part, "\n") + "\n" + end + after, nil
}
