package main

import (
	"fmt"
	"slices"
	"strings"
)

// page is the report as a part of a page of the documentation.
func (r *Report) page() string {
	var b strings.Builder
	m := &r.Machine
	r.results(&b)
	fmt.Fprintf(&b, `## How it was measured

Written by `+"`make bench`"+` from one run; do not edit. The machine has %d cores (%s) and %d GiB of memory, and runs Linux %s,
%s and %s. podctl is %s.%s

`, m.CPUs, m.CPU, m.MemoryGB, m.Kernel, m.Runtime, m.OCI, strings.TrimSpace(strings.TrimPrefix(m.Podctl, "podctl:")), m.peers())
	b.WriteString(method)
	for i := range r.Workloads {
		r.Workloads[i].section(&b)
	}
	b.WriteString(growth)
	if r.Startup != nil {
		r.Startup.section(&b)
	}
	return b.String()
}

// results are podctl's times beside those of the others, before the details.
func (r *Report) results(b *strings.Builder) {
	b.WriteString("Median times of podctl, and how many times those of the others they are (below 1 podctl is faster):\n\n" +
		"| | podctl ms | beside |\n|---|---|---|\n")
	for i := range r.Workloads {
		w := &r.Workloads[i]
		if len(w.Contenders) == 0 {
			continue
		}
		var beside []string
		for _, f := range w.Contenders[1:] {
			if ratio := times(f.Ratio); ratio != "" {
				beside = append(beside, f.Name+" "+ratio)
			}
		}
		fmt.Fprintf(b, "| %s | %.1f | %s |\n", w.Name, w.Contenders[0].Wall.Median, strings.Join(beside, ", "))
	}
	b.WriteString("\n")
}

// peers names the versions of what is measured beside podctl.
func (m *Machine) peers() string {
	peers := slices.DeleteFunc([]string{m.Crictl, m.Podman, m.Kubelet}, func(version string) bool { return version == "" })
	if len(peers) == 0 {
		return ""
	}
	return " Beside it: " + strings.Join(peers, ", ") + "."
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
	fmt.Fprintf(b, "## %s\n\n%s\n\n", r.Name, sentence(r.What))
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

func (s *Startup) section(b *strings.Builder) {
	fmt.Fprintf(b, "## Initialisation\n\n%d packages are initialised before `main`, in %.1f ms together. Those that take longest:\n\n", s.Packages, s.TotalMs)
	b.WriteString("| package | ms |\n|---|---|\n")
	for _, p := range s.Top {
		fmt.Fprintf(b, "| %s | %.2f |\n", p.Name, p.Ms)
	}
}

// sentence makes a sentence of a phrase.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
