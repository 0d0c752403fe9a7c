package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// KeeperReport is a run of the bench with -agent.
type KeeperReport struct {
	Machine   Machine  `json:"machine"`
	Workloads []Result `json:"workloads"`
	Loads     []Load   `json:"loads"`
	Targets   []Target `json:"targets"`
}

// judge fills in the targets of what is used with most pods.
func (r *KeeperReport) judge() {
	r.Targets = nil
	for i := range r.Loads {
		agent := &r.Loads[i]
		other := r.beside(agent)
		if agent.Keeper != agentName || other == nil || agent.Pods != r.Loads[len(r.Loads)-1].Pods {
			continue
		}
		what := fmt.Sprintf("with %d pods", agent.Pods)
		if agent.Probed {
			what += " that are probed"
		}
		r.target("times the processor's time of "+kubeletName+" "+what, 0.33, agent.CPU/other.CPU)
		r.target("times the memory of "+kubeletName+" "+what, 0.4, agent.RSS/other.RSS)
		r.target("MiB of memory "+what, 64, agent.RSS)
		r.target("times its heap and its binary "+what, 1.1, agent.RSS/(agent.Heap+agent.Binary))
	}
}

func (r *KeeperReport) target(text string, limit, measured float64) {
	r.Targets = append(r.Targets, Target{Text: text, Limit: limit, Measured: measured, Met: measured > 0 && measured <= limit})
}

// beside is what the kubelet used at the same time; nil if none was measured.
func (r *KeeperReport) beside(agent *Load) *Load {
	for i := range r.Loads {
		if l := &r.Loads[i]; l.Keeper == kubeletName && l.Pods == agent.Pods && l.Probed == agent.Probed {
			return l
		}
	}
	return nil
}

func (r *KeeperReport) print(out io.Writer) error {
	r.judge()
	var b strings.Builder
	b.WriteString("WORKLOAD\tKEEPER\tMEDIAN ms\tP25-P75\t\t\tAGENT IS\n")
	for i := range r.Workloads {
		r.Workloads[i].rows(&b)
	}
	b.WriteString("\nIDLE\tKEEPER\tCPU ms/s\tRSS MiB\tANON MiB\tHEAP MiB\tCALLS/s\tWAKEUPS/s\tKiB WRITTEN/min\tCONTAINERD CPU ms/s\n")
	for i := range r.Loads {
		l := &r.Loads[i]
		fmt.Fprintf(&b, "%s\t%s\t%.2f\t%.1f\t%.1f\t%.1f\t%.2f\t%.1f\t%.0f\t%.1f\n", l.pods(), l.Keeper, l.CPU, l.RSS, l.Anonymous, l.Heap, l.Calls, l.Wakeups, l.Written, l.RuntimeCPU)
	}
	for _, t := range r.Targets {
		fmt.Fprintf(&b, "  %s\n", t.sentence())
	}
	return tabulate(out, b.String())
}

func (l *Load) pods() string {
	if l.Probed {
		return fmt.Sprintf("%d probed", l.Pods)
	}
	return fmt.Sprint(l.Pods)
}

func (r *KeeperReport) save(jsonFile, markdownFile string) error {
	r.judge()
	return errors.Join(saveJSON(jsonFile, r), savePart(markdownFile, "make bench-agent", r.page()))
}

// page is the report as a part of a page of the documentation.
func (r *KeeperReport) page() string {
	var b strings.Builder
	m := &r.Machine
	b.WriteString("## The agent beside a kubelet\n\n")
	b.WriteString("| | podctl agent ms | a kubelet ms | the agent is | target |\n|---|---|---|---|---|\n")
	for i := range r.Workloads {
		r.Workloads[i].keeperRow(&b)
	}
	b.WriteString("\n")
	for i := range r.Workloads {
		fmt.Fprintf(&b, "* %s: %s%s\n", r.Workloads[i].Name, r.Workloads[i].What, r.Workloads[i].yardsticks())
	}
	b.WriteString("\nWhile nothing happens:\n\n| pods | | CPU ms/s | RSS MiB | anonymous MiB | heap MiB | calls/s | wake-ups/s | KiB written/min | containerd CPU ms/s |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range r.Loads {
		l := &r.Loads[i]
		fmt.Fprintf(&b, "| %s | %s | %.2f | %.1f | %.1f | %.1f | %.2f | %.1f | %.0f | %.1f |\n", l.pods(), l.Keeper, l.CPU, l.RSS, l.Anonymous, l.Heap, l.Calls, l.Wakeups, l.Written, l.RuntimeCPU)
	}
	b.WriteString("\n")
	for _, t := range r.Targets {
		fmt.Fprintf(&b, "* %s\n", t.sentence())
	}
	fmt.Fprintf(&b, keeperMethod, m.CPUs, m.CPU, m.MemoryGB, m.Kernel, m.Runtime, m.OCI,
		strings.TrimSpace(strings.TrimPrefix(m.Podctl, "podctl:")), m.peers())
	return b.String()
}

// keeperRow is a workload in the table of the page.
func (r *Result) keeperRow(b *strings.Builder) {
	agent, kubelet, ratio := r.Contenders[0].Wall, "-", "-"
	for i := range r.Contenders {
		if other := &r.Contenders[i]; other.Name == kubeletName {
			kubelet, ratio = fmt.Sprintf("%.0f (%s)", other.Wall.Median, other.Wall.quartiles()), times(other.Ratio)
		}
	}
	var targets []string
	for _, t := range r.Targets {
		targets = append(targets, t.sentence())
	}
	fmt.Fprintf(b, "| %s | %.0f (%s) | %s | %s | %s |\n", r.Name, agent.Median, agent.quartiles(), kubelet, ratio, strings.Join(targets, "; "))
}

// yardsticks are the contenders that are no keepers.
func (r *Result) yardsticks() string {
	var b strings.Builder
	for i := range r.Contenders {
		if c := &r.Contenders[i]; c.Name != agentName && c.Name != kubeletName {
			fmt.Fprintf(&b, "; %s comes after %.0f ms (%s)", c.Name, c.Wall.Median, c.Wall.quartiles())
		}
	}
	return b.String()
}

// keeperMethod says how it was measured.
const keeperMethod = `
Written by ` + "`make bench-agent`" + ` from one run; do not edit. The machine has %d cores (%s) and %d GiB of memory, and runs Linux %s,
%s and %s. podctl is %s.%s
The agent and the kubelet run at the same time, each on a containerd of its own, with a directory of manifests. Their pods of the
table of idleness stay while the reactions are timed, and at the end all of them run that were there. Reactions are timed in turn,
a kubelet after the agent in each round; the first round is not counted. Times of containers are those of the runtime. What is
used while nothing happens is measured at the same time for both, for a minute, and comes from the kernel; calls to the runtime
and the heap (the less of two readings, as some of it waits for the collection) come from their own metrics. Pods that are
probed have a liveness probe each ten seconds and a readiness probe each five.
`
