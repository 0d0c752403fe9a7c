package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/wait"
)

// moving has the contents of the live lines: the running steps, and the waits of containers. Callers must serialize all
// calls.
type moving struct {
	now     func() time.Time
	several bool
	// steps are the running steps, in the order in which they started.
	steps []*runningStep
	// waiting has the waits of pods, in the order in which they were first reported.
	waiting []podWaits
	// failures are the failures that have been printed.
	failures map[string]bool
}

// runningStep is a step that has started and not ended.
type runningStep struct {
	pod   model.PodRef
	event executor.Event
	began time.Time
	rate  rate
}

type podWaits struct {
	pod  model.PodRef
	list []wait.Obstacle
}

// event records an event of a step. It reports whether the event is a failure, or a step skipped because of one, that
// has been printed before.
func (m *moving) event(ev *executor.Event) (repeated bool) {
	if ev.Step == nil {
		return false
	}
	at := slices.IndexFunc(m.steps, func(s *runningStep) bool {
		return s.pod == ev.Pod && s.event.Step.ID == ev.Step.ID
	})
	switch ev.Kind {
	case executor.StepStarted:
		m.waits(ev.Pod, nil)
		m.steps = append(m.steps, &runningStep{pod: ev.Pod, event: *ev, began: ev.Time})
	case executor.StepProgress:
		if at >= 0 {
			m.steps[at].event = *ev
			m.steps[at].rate.add(ev.Time, ev.Bytes)
		}
	case executor.StepDone, executor.StepFailed, executor.StepSkipped:
		if at >= 0 {
			m.steps = slices.Delete(m.steps, at, at+1)
		}
	case executor.Warning:
	}
	return (ev.Kind == executor.StepFailed || ev.Kind == executor.StepSkipped) && m.repeated(ev)
}

func (m *moving) repeated(ev *executor.Event) bool {
	key := fmt.Sprintf("%s %s %v", ev.Pod, ev.Step.ID, ev.Err)
	seen := m.failures[key]
	m.failures[key] = true
	return seen
}

// waits records what a pod waits for now.
func (m *moving) waits(pod model.PodRef, list []wait.Obstacle) {
	if at := slices.IndexFunc(m.waiting, func(w podWaits) bool { return w.pod == pod }); at >= 0 {
		m.waiting[at].list = list
		return
	}
	m.waiting = append(m.waiting, podWaits{pod, list})
}

// lines returns a line for each running step and for each wait. A line ends with the time, which remains when the line
// is cut.
func (m *moving) lines(width int) []string {
	var lines []string
	for _, s := range m.steps {
		lines = append(lines, m.line(width, s.pod, stepName(s.event.Step), s.detail(), s.clock(m.now())))
	}
	for _, w := range m.waiting {
		for i := range w.list {
			one := &w.list[i]
			step := fmt.Sprintf("%-7s %s", "wait", one.Container)
			lines = append(lines, m.line(width, w.pod, step, one.Text, clock(m.now(), one.Since, one.Until)))
		}
	}
	return lines
}

// leastText is the minimum width of a useful text, in columns. With less space, a line drops the namespace of the pod,
// and then the text.
const leastText = 8

// line formats a line that fits into the width. It never cuts the time.
func (m *moving) line(width int, pod model.PodRef, what, text, clock string) string {
	text, tail := terminal.PrintableLine(text), indented(clock)
	head, room := "", 0
	for _, name := range m.names(pod) {
		head = terminal.PrintableLine("  … " + name + what)
		room = width - displaywidth.String(head) - displaywidth.String(tail) - 2
		if room >= min(leastText, displaywidth.String(text)) {
			break
		}
	}
	if text == "" || room < min(leastText, displaywidth.String(text)) {
		return terminal.Cut(head, width-displaywidth.String(tail)) + tail
	}
	return head + "  " + terminal.Cut(text, room) + tail
}

// names returns the forms of the pod's name for a line, the longest first.
func (m *moving) names(pod model.PodRef) []string {
	if !m.several {
		return []string{""}
	}
	return []string{pod.String() + "  ", pod.Name + "  "}
}

// detail describes the progress of a step.
func (s *runningStep) detail() string {
	ev := &s.event
	switch {
	case ev.TotalBytes > 0:
		return fmt.Sprintf("%s of %s%s", Size(ev.Bytes), Size(ev.TotalBytes), s.rate)
	case !ev.Until.IsZero():
		return ""
	}
	return ev.Detail
}

// clock returns the time until a stopping container is killed, or the time that the step has run.
func (s *runningStep) clock(now time.Time) string {
	if until := s.event.Until; !until.IsZero() {
		return fmt.Sprintf("killed in %.0fs", max(0, until.Sub(now).Seconds()))
	}
	return clock(now, s.began, time.Time{})
}

// clock returns the remaining time if until is set, and otherwise the elapsed time.
func clock(now, since, until time.Time) string {
	switch {
	case !until.IsZero():
		return fmt.Sprintf("%.0fs left", max(0, until.Sub(now).Seconds()))
	case !since.IsZero():
		return fmt.Sprintf("%.0fs", max(0, now.Sub(since).Seconds()))
	}
	return ""
}

// rateWindow is the time over which a rate is measured.
const rateWindow = time.Second

// rate measures bytes per second.
type rate struct {
	from  time.Time
	bytes int64
	last  float64
}

func (r *rate) add(at time.Time, bytes int64) {
	passed := at.Sub(r.from)
	if r.from.IsZero() {
		r.from, r.bytes = at, bytes
		return
	}
	if passed >= rateWindow {
		r.last = float64(bytes-r.bytes) / passed.Seconds()
		r.from, r.bytes = at, bytes
	}
}

// String returns the rate for display. It is empty while the rate is unknown.
func (r rate) String() string {
	if r.last <= 0 {
		return ""
	}
	return ", " + Size(int64(r.last)) + "/s"
}
