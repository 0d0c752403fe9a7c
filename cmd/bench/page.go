package main

import (
	"fmt"
	"slices"
	"strings"
)

// page is the report as a part of a page of the documentation.
func (r *Report) page() string {
	var b strings.Builder
	b.WriteString("Median times of podctl, and how many times those of the others they are (below 1 podctl is faster):\n\n" +
		"| | podctl ms | beside |\n|---|---|---|\n")
	for i := range r.Workloads {
		w := &r.Workloads[i]
		var beside []string
		for _, f := range w.Contenders[1:] {
			if ratio := times(f.Ratio); ratio != "" {
				beside = append(beside, f.Name+" "+ratio)
			}
		}
		fmt.Fprintf(&b, "| %s | %.1f | %s |\n", w.Name, w.Contenders[0].Wall.Median, strings.Join(beside, ", "))
	}
	b.WriteString("\n## How it was measured\n\n" + r.Machine.sentence("make bench") + "\n" + method)
	for i := range r.Workloads {
		r.Workloads[i].section(&b)
	}
	b.WriteString(growth)
	if s := r.Startup; s != nil {
		fmt.Fprintf(&b, "## Initialisation\n\n%d packages are initialised before `main`, in %.1f ms together. Those that take longest:\n\n", s.Packages, s.TotalMs)
		b.WriteString("| package | ms |\n|---|---|\n")
		for _, p := range s.Top {
			fmt.Fprintf(&b, "| %s | %.2f |\n", p.Name, p.Ms)
		}
	}
	return b.String()
}

// sentence says what was measured on, and with which versions.
func (m *Machine) sentence(target string) string {
	peers := slices.DeleteFunc([]string{m.Crictl, m.Podman, m.Kubelet}, func(version string) bool { return version == "" })
	beside := ""
	if len(peers) > 0 {
		beside = " Beside it: " + strings.Join(peers, ", ") + "."
	}
	return fmt.Sprintf(`Written by `+"`%s`"+` from one run; do not edit. The machine has %d cores (%s) and %d GiB of memory, and runs Linux %s,
%s and %s. podctl is %s.%s
`, target, m.CPUs, m.CPU, m.MemoryGB, m.Kernel, m.Runtime, m.OCI, strings.TrimSpace(strings.TrimPrefix(m.Podctl, "podctl:")), beside)
}

// growth says what makes the measurements of scale grow.
const growth = `## What grows with the node

The number of calls of a plan does not (above: ` + "`plan-…`" + `). Their time does, a little: a runtime answers a filtered list by going
through all its records. ` + "`apply`" + ` looks for a kubelet among the names of all processes, of which each pod that runs
adds two or three. ` + "`get -A`" + ` lists everything once and asks for the status of each container.

`

// method says how it was measured.
const method = `The **floor** is what the container runtime itself needs for the calls that any tool has to make: the bench makes them
over one open connection, with the messages that podctl sends (` + "`podctl render --cri`" + `), one after the other, or with the
containers side by side. It knows no manifest, writes nothing down and asks nothing; init containers are asked after each
millisecond. All contenders of a workload run in turn (A B C A B C …) on a private containerd, so that a machine
whose speed drifts is as slow for one as for the other. The first round is not counted: it is the one in which the memory is
looked at, which takes time from who works on the same processors. podctl and its peers are timed as whole processes. Figures
are medians in milliseconds with the quartiles; "podctl is" is the median of the ratios of the same rounds. What a run leaves
is removed between runs and not timed, and the kernel has a tenth of a second to take it down.

A kubelet without an API server is measured where ` + "`-kubelet`" + ` names one: from the moment in which the manifest lies in its
directory until all containers run, or from its disappearance until nothing of the pod runs any more (it removes the records
later). The runtime is asked for that each five milliseconds. The kubelet's start, and two seconds after it, are not timed.

`

func (r *Result) section(b *strings.Builder) {
	fmt.Fprintf(b, "## %s\n\n%s%s.\n\n", r.Name, strings.ToUpper(r.What[:1]), r.What[1:])
	b.WriteString("| | runs | median ms | quartiles | CPU ms | MiB | podctl is |\n|---|---|---|---|---|---|---|\n")
	for _, f := range r.Contenders {
		fmt.Fprintf(b, "| %s | %d | %.1f | %s | %s | %s | %s |\n", f.Name, f.Runs, f.Wall.Median, f.Wall.quartiles(), orDash(f.CPU), orDash(f.MaxRSS), times(f.Ratio))
	}
	b.WriteString("\n")
	for _, t := range r.Targets {
		fmt.Fprintf(b, "* %s\n", t.sentence())
	}
	if len(r.RoundTrips) > 0 {
		fmt.Fprintf(b, "* calls of one run: %s\n", trips(r.RoundTrips))
	}
	if len(r.Targets)+len(r.RoundTrips) > 0 {
		b.WriteString("\n")
	}
}

// page is the report as a part of a page of the documentation.
func (r *KeeperReport) page() string {
	r.judge()
	var b, notes strings.Builder
	b.WriteString("## The agent beside a kubelet\n\n| | podctl agent ms | a kubelet ms | the agent is | target |\n|---|---|---|---|---|\n")
	for i := range r.Workloads {
		r.Workloads[i].keeperRow(&b, &notes)
	}
	b.WriteString("\n" + notes.String())
	b.WriteString("\nWhile nothing happens:\n\n| pods | | CPU ms/s | RSS MiB | anonymous MiB | heap MiB | calls/s | wake-ups/s | KiB written/min | containerd CPU ms/s |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range r.Loads {
		l := &r.Loads[i]
		fmt.Fprintf(&b, "| %s | %s | %.2f | %.1f | %.1f | %.1f | %.2f | %.1f | %.0f | %.1f |\n",
			l.pods(), l.Keeper, l.CPU, l.RSS, l.Anonymous, l.Heap, l.Calls, l.Wakeups, l.Written, l.RuntimeCPU)
	}
	b.WriteString("\n")
	for _, t := range r.Targets {
		fmt.Fprintf(&b, "* %s\n", t.sentence())
	}
	return b.String() + "\n" + r.Machine.sentence("make bench-agent") + keeperMethod
}

// keeperRow is a workload in the table of the page, with a note of what it is and of what is no keeper.
func (r *Result) keeperRow(b, notes *strings.Builder) {
	fmt.Fprintf(notes, "* %s: %s", r.Name, r.What)
	agent, kubelet, ratio := r.Contenders[0].Wall, "-", "-"
	for _, f := range r.Contenders[1:] {
		figure := fmt.Sprintf("(%s)", f.Wall.quartiles())
		if f.Name == kubeletName {
			kubelet, ratio = fmt.Sprintf("%.0f %s", f.Wall.Median, figure), times(f.Ratio)
		} else {
			fmt.Fprintf(notes, "; %s comes after %.0f ms %s", f.Name, f.Wall.Median, figure)
		}
	}
	notes.WriteString("\n")
	var targets []string
	for _, t := range r.Targets {
		targets = append(targets, t.sentence())
	}
	fmt.Fprintf(b, "| %s | %.0f (%s) | %s | %s | %s |\n", r.Name, agent.Median, agent.quartiles(), kubelet, ratio, strings.Join(targets, "; "))
}

// keeperMethod says how it was measured.
const keeperMethod = `The agent and the kubelet run at the same time, each on a containerd of its own, with a directory of manifests. Their pods of the
table of idleness stay while the reactions are timed, and at the end all of them run that were there. Reactions are timed in turn,
a kubelet after the agent in each round; the first round is not counted. Times of containers are those of the runtime. What is
used while nothing happens is measured at the same time for both, for a minute, and comes from the kernel; calls to the runtime
and the heap (the less of two readings, as some of it waits for the collection) come from their own metrics. Pods that are
probed have a liveness probe each ten seconds and a readiness probe each five.
`
