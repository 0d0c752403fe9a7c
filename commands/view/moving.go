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

// moving is what changes while a command works: the steps that run, and what containers wait for.
// All its methods are called one at a time.
type moving struct {
	now     func() time.Time
	several bool
	// steps are those that run, in the order in which they began.
	steps []*runningStep
	// waiting is what pods wait for, in the order in which they were first told of.
	waiting []podWaits
	// failures are those that have been printed.
	failures map[string]bool
}

// runningStep is a step that has begun and not ended.
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

// event takes in what happened to a step, and reports whether that is a failure, or a step
// skipped for one, which has been printed before.
func (m *moving) event(ev *executor.Event) (repeated bool) {
	if ev.Step == nil {
		return false
	}
	at := slices.IndexFunc(m.steps, func(s *runningStep) bool { return s.pod == ev.Pod && s.event.Step.ID == ev.Step.ID })
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

// waits takes in what a pod waits for now.
func (m *moving) waits(pod model.PodRef, list []wait.Obstacle) {
	if at := slices.IndexFunc(m.waiting, func(w podWaits) bool { return w.pod == pod }); at >= 0 {
		m.waiting[at].list = list
		return
	}
	m.waiting = append(m.waiting, podWaits{pod, list})
}

// lines are one for each step that runs, and one for each thing that is waited for. They end with
// the time, which stays when a line is cut.
func (m *moving) lines(width int) []string {
	var lines []string
	for _, s := range m.steps {
		lines = append(lines, m.line(width, s.pod, stepName(s.event.Step), s.detail(), s.clock(m.now())))
	}
	for _, w := range m.waiting {
		for i := range w.list {
			one := &w.list[i]
			lines = append(lines, m.line(width, w.pod, fmt.Sprintf("%-7s %s", "wait", one.Container), one.Text, clock(m.now(), one.Since, one.Until)))
		}
	}
	return lines
}

// leastText is the room that a text needs to be of use. Where there is less, the namespace of the
// pod gives way, and then the text.
const leastText = 8

// line fits into the width. Its time is never cut.
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

// names are what a line can call its pod, the longest first.
func (m *moving) names(pod model.PodRef) []string {
	if !m.several {
		return []string{""}
	}
	return []string{pod.String() + "  ", pod.Name + "  "}
}

// detail is how far a step is.
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

// clock is when a container that was asked to end is killed, or how long the step has run.
func (s *runningStep) clock(now time.Time) string {
	if until := s.event.Until; !until.IsZero() {
		return fmt.Sprintf("killed in %.0fs", max(0, until.Sub(now).Seconds()))
	}
	return clock(now, s.began, time.Time{})
}

// clock is the time that is left, or else the time that has passed.
func clock(now, since, until time.Time) string {
	switch {
	case !until.IsZero():
		return fmt.Sprintf("%.0fs left", max(0, until.Sub(now).Seconds()))
	case !since.IsZero():
		return fmt.Sprintf("%.0fs", max(0, now.Sub(since).Seconds()))
	}
	return ""
}

// rateWindow is the time over which bytes per second are counted.
const rateWindow = time.Second

// rate counts bytes per second.
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

// String is the rate as it is shown; empty while it is not known.
func (r rate) String() string {
	if r.last <= 0 {
		return ""
	}
	return ", " + Size(int64(r.last)) + "/s"
}
