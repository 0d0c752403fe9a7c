package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// report is the result of a run of the bench.
type report struct {
	// Machine describes the machine and the versions of all programs.
	Machine string
	Results []Result
	// Loads and Targets describe the idle usage. Only the agent's bench has them.
	Loads   []Load
	Targets []Target
}

// Result is the result of one workload.
type Result struct {
	Name, What string
	Contenders []Figures
	Targets    []Target
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

// Target is a limit for podctl.
type Target struct {
	Text            string
	Limit, Measured float64
}

func (t Target) met() bool { return t.Measured > 0 && t.Measured <= t.Limit }

func (t Target) sentence() string {
	verdict := "met"
	if !t.met() {
		verdict = "not met"
	}
	return fmt.Sprintf("target ≤ %.4g %s: %.3g, %s", t.Limit, t.Text, t.Measured, verdict)
}

// page returns the report as a part of a page of the documentation.
func (r *report) page(target, method string) string {
	var b, notes strings.Builder
	fmt.Fprintf(&b, "## %s\n\n"+
		"| | | runs | median ms | quartiles | CPU ms | the first is |\n"+
		"|---|---|---|---|---|---|---|\n", target)
	for i := range r.Results {
		r.Results[i].rows(&b, &notes)
	}
	b.WriteString("\n" + notes.String() + "\n")
	if len(r.Loads) > 0 {
		b.WriteString("While nothing happens:\n\n" +
			"| pods | | CPU ms/s | RSS MiB | anonymous MiB | heap MiB | calls/s | wake-ups/s |\n" +
			"|---|---|---|---|---|---|---|---|\n")
		for _, l := range r.Loads {
			fmt.Fprintf(&b, "| %s | %s | %.2f | %.1f | %.1f | %.1f | %.2f | %.1f |\n",
				l.pods(), l.Agent, l.CPU, l.RSS, l.Anonymous, l.Heap, l.Calls, l.Wakeups)
		}
		b.WriteString("\n")
		for _, t := range r.Targets {
			fmt.Fprintf(&b, "* %s\n", t.sentence())
		}
		b.WriteString("\n")
	}
	return b.String() + r.Machine + "\n" + method
}

// rows writes a workload to the table of the page, with a note that explains it.
func (r *Result) rows(b, notes *strings.Builder) {
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
	fmt.Fprintf(notes, "* %s: %s", r.Name, r.What)
	for _, t := range r.Targets {
		notes.WriteString("; " + t.sentence())
	}
	notes.WriteString("\n")
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
	"runtime. Idle usage is measured for both at the same time; " +
	"the kernel reports it, except calls to the runtime and the heap (the less\n" +
	"of two readings, because a part waits for the collection), which come from their own metrics. " +
	"Probed pods have a liveness probe every ten\n" +
	"seconds and a readiness probe every five.\n"

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

// saveSummary writes the ratios of a page of tables to another page. An empty path saves nothing.
func saveSummary(path, tables string) error {
	if path == "" || tables == "" {
		return nil
	}
	page, err := os.ReadFile(tables)
	if err != nil {
		return err
	}
	return savePart(path, summaryPart, summary(string(page)))
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
