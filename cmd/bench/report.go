package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
)

// Report is a whole run of the bench: what -json writes.
type Report struct {
	Machine   Machine  `json:"machine"`
	Rounds    int      `json:"rounds"`
	Workloads []Result `json:"workloads"`
	Startup   *Startup `json:"startup,omitempty"`
}

// Machine is what was measured on and with.
type Machine struct {
	CPUs     int    `json:"cpus"`
	CPU      string `json:"cpu"`
	MemoryGB int    `json:"memoryGB"`
	Kernel   string `json:"kernel"`
	Podctl   string `json:"podctl"`
	Runtime  string `json:"runtime"`
	OCI      string `json:"oci"`
	Podman   string `json:"podman,omitempty"`
	Crictl   string `json:"crictl,omitempty"`
	Kubelet  string `json:"kubelet,omitempty"`
}

// Result is one workload.
type Result struct {
	Name       string         `json:"name"`
	What       string         `json:"what"`
	Contenders []Figures      `json:"contenders"`
	Targets    []Target       `json:"targets,omitempty"`
	RoundTrips map[string]int `json:"roundTrips,omitempty"`
}

// Figures are what one contender took.
type Figures struct {
	Name string `json:"name"`
	Runs int    `json:"runs"`
	Wall Spread `json:"wallMs"`
	// CPU is the median of user and system time, in milliseconds, MaxRSS the largest
	// memory in MiB; both are zero for calls that the bench makes itself.
	CPU    float64 `json:"cpuMs,omitempty"`
	MaxRSS float64 `json:"maxRssMiB,omitempty"`
	// Ratio is the median of podctl's time to this contender's, round by round.
	Ratio float64 `json:"podctlRatio,omitempty"`
}

// Spread is a median with the quartiles around it.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"p25"`
	High   float64 `json:"p75"`
}

// Target is what podctl is meant to keep to.
type Target struct {
	Text     string  `json:"text"`
	Limit    float64 `json:"limit"`
	Measured float64 `json:"measured"`
	Met      bool    `json:"met"`
}

// Startup is what the initialisation of packages costs before podctl does anything.
type Startup struct {
	Packages int       `json:"packages"`
	TotalMs  float64   `json:"totalMs"`
	Top      []Package `json:"top"`
}

// Package is one that takes time to initialise.
type Package struct {
	Name string  `json:"name"`
	Ms   float64 `json:"ms"`
}

// add measures one workload more.
func (r *Report) add(ctx context.Context, w *workload, rounds int) error {
	result, err := w.measure(ctx, rounds)
	if err != nil {
		return err
	}
	r.Workloads = append(r.Workloads, *result)
	return nil
}

// print writes the tables for a terminal.
func (r *Report) print(out io.Writer) error {
	var b strings.Builder
	b.WriteString("WORKLOAD\tCONTENDER\tMEDIAN ms\tP25-P75\tCPU ms\tRSS MiB\tPODCTL IS\n")
	for i := range r.Workloads {
		r.Workloads[i].rows(&b)
	}
	if s := r.Startup; s != nil {
		fmt.Fprintf(&b, "package initialisation\t%.1f ms in %d packages, most of it in:\n", s.TotalMs, s.Packages)
		for _, p := range s.Top {
			fmt.Fprintf(&b, "\t%s\t%.2f\n", p.Name, p.Ms)
		}
	}
	return tabulate(out, b.String())
}

// rows are a workload in the table.
func (r *Result) rows(b *strings.Builder) {
	name := r.Name
	for _, f := range r.Contenders {
		fmt.Fprintf(b, "%s\t%s\t%.1f\t%s\t%s\t%s\t%s\n", name, f.Name, f.Wall.Median, f.Wall.quartiles(), orDash(f.CPU), orDash(f.MaxRSS), times(f.Ratio))
		name = ""
	}
	for _, t := range r.Targets {
		fmt.Fprintf(b, "\t  %s\n", t.sentence())
	}
	if len(r.RoundTrips) > 0 {
		fmt.Fprintf(b, "\t  calls: %s\n", trips(r.RoundTrips))
	}
}

// tabulate writes lines of columns.
func tabulate(out io.Writer, text string) error {
	tab := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if _, err := io.WriteString(tab, text); err != nil {
		return err
	}
	return tab.Flush()
}

// save writes the files that were asked for.
func (r *Report) save(jsonFile, markdownFile string) error {
	return errors.Join(saveJSON(jsonFile, r), savePart(markdownFile, "make bench", r.page()))
}

// saveJSON writes all figures to a file, unless its name is empty.
func saveJSON(path string, report any) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // figures are for everybody
}

// savePart puts a part of a page in the place of the same part of before, and leaves the others.
func savePart(path, name, part string) error {
	if path == "" {
		return nil
	}
	page, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte(withPart(string(page), name, part)), 0o644) //nolint:gosec // as above
}

// withPart is a page with one of its parts replaced, or with a part more.
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

func (s Spread) quartiles() string { return fmt.Sprintf("%.1f-%.1f", s.Low, s.High) }

func (t Target) sentence() string {
	verdict := "met"
	if !t.Met {
		verdict = "not met"
	}
	return fmt.Sprintf("target ≤ %.4g %s: %.3g, %s", t.Limit, t.Text, t.Measured, verdict)
}

func orDash(value float64) string {
	if value == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", value)
}

func times(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f×", ratio)
}

func trips(counts map[string]int) string {
	var parts []string
	for _, name := range byCount(counts) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
