package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// report is the result of a run of the bench.
type report struct {
	// Machine describes the machine and the versions of all programs.
	Machine string
	Results []Result
	// Loads are the idle usage, and Idle compares it. Only the agent's bench has them.
	Loads []Load
	Idle  []Result
}

// Result is the result of one workload.
type Result struct {
	// What describes the workload. The text after a semicolon is only in the page of tables.
	Name, What string
	Contenders []Figures
	// Target is zero for a workload without a target.
	Target Target
}

// Figures are the figures of one contender.
type Figures struct {
	Name string
	Runs int
	Wall Spread
	// CPU is the median of user and system time in milliseconds. It is zero for calls of the bench itself.
	CPU float64
	// Ratio is the median, over all rounds, of the first contender's time divided by this one's.
	Ratio float64
}

// Spread is a median with its quartiles, in milliseconds.
type Spread struct{ Median, Low, High float64 }

// Target is a limit for podctl: a value in a unit, or a ratio to another contender.
type Target struct {
	Unit, Against   string
	Limit, Measured float64
}

// verdict returns whether the limit is met.
func (t *Target) verdict() string {
	if t.Measured > 0 && t.Measured <= t.Limit {
		return "met"
	}
	return "not met"
}

// page returns the report as a part of the page of tables.
func (r *report) page(target, method string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n"+
		"| | | runs | median ms | quartiles | CPU ms | the first is |\n"+
		"|---|---|---|---|---|---|---|\n", target)
	for i := range r.Results {
		r.Results[i].rows(&b)
	}
	notes(&b, r.Results)
	if len(r.Loads) > 0 {
		b.WriteString("While nothing happens:\n\n" +
			"| pods | | CPU ms/s | RSS MiB | anonymous MiB |\n|---|---|---|---|---|\n")
		for _, l := range r.Loads {
			fmt.Fprintf(&b, "| %s | %s | %.2f | %.1f | %.1f |\n", l.pods(), l.Agent, l.CPU, l.RSS, l.Anonymous)
		}
		notes(&b, r.Idle)
	}
	return b.String() + r.Machine + "\n" + method
}

// rows writes the rows of a workload in the table.
func (r *Result) rows(b *strings.Builder) {
	name := r.Name
	for _, f := range r.Contenders {
		cpu, ratio := "-", ""
		if f.CPU > 0 {
			cpu = fmt.Sprintf("%.1f", f.CPU)
		}
		if f.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f×", f.Ratio)
		}
		fmt.Fprintf(b, "| %s | %s | %d | %.1f | %.1f-%.1f | %s | %s |\n",
			name, f.Name, f.Runs, f.Wall.Median, f.Wall.Low, f.Wall.High, cpu, ratio)
		name = ""
	}
}

// notes writes what was measured, and the targets.
func notes(b *strings.Builder, results []Result) {
	b.WriteString("\n")
	for i := range results {
		r := &results[i]
		parts := slices.DeleteFunc([]string{r.What, r.Target.sentence()}, func(s string) bool { return s == "" })
		fmt.Fprintf(b, "* %s: %s\n", r.Name, strings.Join(parts, "; "))
	}
	b.WriteString("\n")
}

// sentence returns the target with its verdict; nothing without a target.
func (t *Target) sentence() string {
	if t.Limit == 0 {
		return ""
	}
	unit := t.Unit
	if t.Against != "" {
		unit = "times " + t.Against
	}
	return fmt.Sprintf("target ≤ %.4g %s: %.3g, %s", t.Limit, unit, t.Measured, t.verdict())
}

// summary returns a table with the ratios and targets of the report.
func (r *report) summary() string {
	var b strings.Builder
	competitors := []string{"floor", "crictl", "podman", kubeletName}
	b.WriteString("| benchmark | " + strings.Join(competitors, " | ") + " | target | |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, result := range slices.Concat(r.Results, r.Idle) {
		b.WriteString("| " + result.title() + " |")
		for _, name := range competitors {
			b.WriteString(" " + result.ratio(name) + " |")
		}
		target, verdict := fmt.Sprintf("≤ %.4g", result.Target.Limit), result.Target.verdict()
		if result.Target.Against == "" {
			target += " " + result.Target.Unit
			verdict = fmt.Sprintf("%.3g, %s", result.Target.Measured, verdict)
		}
		fmt.Fprintf(&b, " %s | %s |\n", target, verdict)
	}
	return b.String()
}

func (r *Result) title() string {
	what, _, _ := strings.Cut(r.What, ";")
	if what == "" {
		return r.Name
	}
	return "`" + r.Name + "`: " + what
}

// ratio returns the ratio to a competitor; to the floor with containers side by side, if that was measured.
func (r *Result) ratio(competitor string) (text string) {
	for _, f := range r.Contenders {
		if f.Ratio > 0 && strings.HasPrefix(f.Name, competitor) {
			text = fmt.Sprintf("%.3g×", f.Ratio)
		}
	}
	return text
}

// commandMethod explains the figures of commands.
const commandMethod = "The **floor** is the time of the calls that every tool has to make. " +
	"The bench makes them over one open connection, with the\n" +
	"messages that podctl sends (`podctl render --cri`), one after the other or with the containers side by side. " +
	"All contenders\n" +
	"of a workload run in turn (A B C A B C …) on a private containerd, " +
	"so a machine whose speed drifts is as slow for one as for the\n" +
	"other. \"The first is\" is the median of the ratios within the same round. " +
	"The first round and the clean-up between runs do not count.\n" +
	"podctl, crictl and podman are timed as whole processes.\n"

// agentMethod explains the figures of the agent.
const agentMethod = "The agent and the kubelet run at the same time, each on a containerd of its own, " +
	"with a directory of manifests. The pods of the\n" +
	"idle measurement stay while reactions are timed in turn, and all of them still run at the end. " +
	"Times of containers are those of the\n" +
	"runtime. Idle usage is measured for both at the same time, by the kernel. Probed pods have\n" +
	"a liveness probe every ten seconds and a readiness probe every five.\n"

// savePart replaces a part of a page and keeps the others. An empty path saves nothing.
func savePart(path, name, part string) error {
	if path == "" {
		return nil
	}
	page, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := withPart(string(page), name, part)
	return os.WriteFile(path, []byte(text), 0o644) // a page that everybody may read
}

// withPart returns a page with one of its parts replaced or added.
func withPart(page, name, part string) string {
	begin, end := fmt.Sprintf("<!-- %s -->\n\n", name), fmt.Sprintf("\n<!-- end of %s -->\n", name)
	part = begin + strings.TrimRight(part, "\n") + "\n" + end
	before, rest, found := strings.Cut(page, begin)
	if !found {
		return cmp.Or(page, "# Benchmarks\n") + "\n" + part
	}
	_, after, _ := strings.Cut(rest, end)
	return before + part + after
}
