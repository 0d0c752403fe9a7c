package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// Report is a whole run of the bench: what -json writes.
type Report struct {
	Machine   Machine  `json:"machine"`
	Rounds    int      `json:"rounds"`
	Workloads []Result `json:"workloads"`
	Startup   *Startup `json:"startup,omitempty"`
}

// KeeperReport is a run of the bench with -agent.
type KeeperReport struct {
	Machine   Machine  `json:"machine"`
	Workloads []Result `json:"workloads"`
	Loads     []Load   `json:"loads"`
	Targets   []Target `json:"targets"`
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

// publish writes a page for a terminal and into the file, if there is one, and all figures into another.
func publish(o *options, report any, name, page string) error {
	_, err := io.WriteString(os.Stdout, page)
	return errors.Join(err, saveJSON(o.json, report), savePart(o.markdown, name, page))
}

// judge fills in the targets of what is used with most pods.
func (r *KeeperReport) judge() {
	r.Targets = nil
	for i := range r.Loads {
		agent := &r.Loads[i]
		other := slices.IndexFunc(r.Loads, func(l Load) bool {
			return l.Keeper == kubeletName && l.Pods == agent.Pods && l.Probed == agent.Probed
		})
		if agent.Keeper != agentName || other < 0 || agent.Pods != r.Loads[len(r.Loads)-1].Pods {
			continue
		}
		kubelet, what := &r.Loads[other], fmt.Sprintf("with %d pods", agent.Pods)
		if agent.Probed {
			what += " that are probed"
		}
		r.Targets = append(r.Targets,
			target("times the processor's time of "+kubeletName+" "+what, 0.33, agent.CPU/kubelet.CPU),
			target("times the memory of "+kubeletName+" "+what, 0.4, agent.RSS/kubelet.RSS),
			target("MiB of memory "+what, 64, agent.RSS),
			target("times its heap and its binary "+what, 1.1, agent.RSS/(agent.Heap+agent.Binary)))
	}
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

func (l *Load) pods() string {
	if l.Probed {
		return fmt.Sprintf("%d probed", l.Pods)
	}
	return fmt.Sprint(l.Pods)
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

// trips lists calls, the most frequent first.
func trips(counts map[string]int) string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
