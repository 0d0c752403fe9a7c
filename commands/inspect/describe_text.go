package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// description builds a text of names and values, indented by level. Values from other sources are made printable and
// cannot add lines.
type description struct {
	now  time.Time
	text strings.Builder
}

// fieldWidth is the column where values begin, at level 0.
const fieldWidth = 20

func (v *description) line(level int, format string, args ...any) {
	fmt.Fprintf(&v.text, "%s%s\n", strings.Repeat("  ", level), terminal.PrintableLine(fmt.Sprintf(format, args...)))
}

func (v *description) heading(level int, name string) { v.line(level, "%s:", name) }

func (v *description) field(level int, name, format string, args ...any) {
	width := max(fieldWidth-2*level, len(name)+2)
	v.line(level, "%-*s%s", width, name+":", fmt.Sprintf(format, args...))
}

// optional writes a field unless its value is empty.
func (v *description) optional(level int, name, value string) {
	if value != "" {
		v.field(level, name, "%s", value)
	}
}

func (v *description) pairs(name string, values map[string]string) {
	if len(values) == 0 {
		v.field(0, name, table.NoValue)
		return
	}
	for i, key := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			v.line(0, "%*s%s=%s", fieldWidth, "", key, values[key])
			continue
		}
		v.field(0, name, "%s=%s", key, values[key])
	}
}

func (v *description) when(at time.Time) string {
	return fmt.Sprintf("%s (%s ago)", at.Local().Format(time.RFC1123Z), duration.HumanDuration(v.now.Sub(at)))
}

// state writes the state of a container with its reason and times.
func (v *description) state(name string, s *v1.ContainerState) {
	switch {
	case s.Running != nil:
		v.field(2, name, "Running since %s", v.when(s.Running.StartedAt.Time))
	case s.Terminated != nil:
		t := s.Terminated
		v.field(2, name, "Terminated: %s, exit code %s, %s",
			view.EndText(t, ""), model.ExitText(t.ExitCode), v.when(t.FinishedAt.Time))
		v.message(t.Message)
	case s.Waiting != nil:
		v.field(2, name, "Waiting: %s", cmp.Or(s.Waiting.Reason, table.NoValue))
		v.message(s.Waiting.Message)
	}
}

func (v *description) message(text string) {
	for line := range strings.Lines(text) {
		v.line(3, "%s", strings.TrimSuffix(line, "\n"))
	}
}

func resourcesText(list v1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		parts = append(parts, fmt.Sprintf("%s %s", name, quantity.String()))
	}
	return strings.Join(parts, ", ")
}

// probeText describes a probe on one line (kubectl: DescribeProbe).
func probeText(p *v1.Probe) string {
	return fmt.Sprintf("%s delay=%ds timeout=%ds period=%ds #success=%d #failure=%d", probeTarget(p),
		p.InitialDelaySeconds, p.TimeoutSeconds, p.PeriodSeconds, p.SuccessThreshold, p.FailureThreshold)
}

func probeTarget(p *v1.Probe) string {
	switch {
	case p.Exec != nil:
		return fmt.Sprintf("exec %v", p.Exec.Command)
	case p.HTTPGet != nil:
		return fmt.Sprintf("http-get %s://%s:%s%s",
			strings.ToLower(string(p.HTTPGet.Scheme)), p.HTTPGet.Host, p.HTTPGet.Port.String(), p.HTTPGet.Path)
	case p.TCPSocket != nil:
		return fmt.Sprintf("tcp-socket %s:%s", p.TCPSocket.Host, p.TCPSocket.Port.String())
	case p.GRPC != nil:
		return fmt.Sprintf("grpc :%d", p.GRPC.Port)
	}
	return "unknown"
}

// eventsOf returns the events of the pod since it was first applied. The history can also have events of an earlier
// pod.
func eventsOf(h *state.History, pod *v1.Pod) []state.PodEvent {
	return slices.DeleteFunc(slices.Clone(h.Events), func(e state.PodEvent) bool {
		start := pod.Status.StartTime
		return start != nil && e.Last.Before(start.Truncate(time.Second))
	})
}

func (v *description) events(h *state.History, pod *v1.Pod) {
	var lines []string
	for _, e := range eventsOf(h, pod) {
		object := e.Container
		if object == "" {
			object = model.RefOf(pod).Name
		}
		lines = append(lines, fmt.Sprintf("%-8s %-22s %-20s %-12s %s",
			e.Type, e.Reason, view.LastSeen(v.now, &e), object, e.Message))
	}
	if len(lines) == 0 {
		v.field(0, "Events", table.NoValue)
		return
	}
	v.heading(0, "Events")
	v.line(1, "%-8s %-22s %-20s %-12s %s", "TYPE", "REASON", "LAST SEEN", "OBJECT", "MESSAGE")
	for _, line := range lines {
		v.line(1, "%s", line)
	}
}
