package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/wait"
)

// Progress shows steps while they run, and what a pod waits for: on a terminal in lines that are
// drawn anew until they have ended, elsewhere in one plain line per step that has ended.
type Progress struct {
	io     *terminal.IO
	colors terminal.Colors
	// several reports whether more than one pod is worked on, so that lines name it.
	several bool
	// moving is what the live lines show; nil without a terminal.
	moving *moving
	live   *terminal.Live
}

// NewProgress shows what happens to one pod, or to several concurrently. Stop has to be called.
func NewProgress(out *terminal.IO, pods int) *Progress {
	p := &Progress{io: out, colors: out.ErrColors(), several: pods > 1}
	if out.ShowsLive() {
		p.moving = &moving{now: out.Now, several: p.several, failures: map[string]bool{}}
		p.live = out.Live(p.moving.lines)
	}
	return p
}

// Stop takes the live lines away.
func (p *Progress) Stop() {
	if p.live != nil {
		p.live.Stop()
	}
}

// Live reports whether steps are shown while they run.
func (p *Progress) Live() bool { return p.live != nil }

// Report shows one event.
func (p *Progress) Report(ev executor.Event) { p.io.Exclusive(func() { p.report(ev) }) }

// Obstacles shows what a pod waits for now.
func (p *Progress) Obstacles(pod model.PodRef, list []wait.Obstacle) {
	if p.moving != nil {
		p.io.Exclusive(func() { p.moving.waits(pod, list) })
	}
}

// report prints one event. A failure that a wait has seen before is not printed again on a
// terminal, where the live lines say that it is tried again.
func (p *Progress) report(ev executor.Event) {
	if ev.Step != nil && ev.Step.Kind == plan.CheckContainer && ev.Kind != executor.StepFailed {
		return
	}
	if p.moving != nil && p.moving.event(&ev) {
		return
	}
	switch ev.Kind {
	case executor.StepStarted, executor.StepProgress:
	case executor.StepDone:
		took := p.colors.Dim(fmt.Sprintf("  %.2fs", ev.Took.Seconds()))
		p.print(p.colors.Green("  ✓ "), terminal.PrintableLine(p.step(ev))+took+terminal.PrintableLine(indented(ev.Detail)))
	case executor.StepFailed:
		p.print(p.colors.Red("  ✗ "), terminal.PrintableLine(p.step(ev)+"  "+failureReason(ev.Err)))
	case executor.StepSkipped:
		p.print(p.colors.Dim("  - "), terminal.PrintableLine(p.step(ev)+"  skipped"))
	case executor.Warning:
		p.print(p.colors.Yellow("  ! "), terminal.PrintableLine(p.pod(ev)+ev.Detail))
	}
}

// failureReason is the kubelet's word for a failure, and what happened. The line names the step,
// so the error need not.
func failureReason(err error) string {
	step, ok := errors.AsType[*executor.StepError](err)
	switch {
	case ok && step.Reason == model.Interrupted:
		return "interrupted"
	case ok:
		return model.StartError{Reason: step.Reason, Message: step.Err.Error()}.Line()
	}
	return err.Error()
}

// print writes one line; what is in it of others is printable already.
func (p *Progress) print(mark, text string) {
	fmt.Fprintln(p.io.Err, mark+text) //nolint:errcheck // progress is a courtesy
}

// step names the step in the words of the plan.
func (p *Progress) step(ev executor.Event) string {
	return p.pod(ev) + stepName(ev.Step) + indented(ev.Step.Detail())
}

// stepName is what a step does, and to what.
func stepName(s *plan.Step) string { return fmt.Sprintf("%-7s %s", s.Kind.Verb(), s.Object()) }

// pod names the pod where there are several.
func (p *Progress) pod(ev executor.Event) string {
	if p.several {
		return ev.Pod.String() + "  "
	}
	return ""
}

func indented(text string) string {
	if text == "" {
		return ""
	}
	return "  " + text
}

// eventDocument is one line of `apply -o json`.
type eventDocument struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Time       time.Time    `json:"time"`
	Pod        model.PodRef `json:"pod"`
	// Type is Started, Progress, Done, Failed, Skipped or Warning.
	Type   string     `json:"type"`
	Step   *plan.Step `json:"step,omitempty"`
	Millis int64      `json:"milliseconds,omitempty"`
	Detail string     `json:"detail,omitempty"`
	Error  string     `json:"error,omitempty"`
}

// EventLines prints events as lines of JSON.
func EventLines(out *terminal.IO) func(executor.Event) {
	return func(ev executor.Event) {
		doc := eventDocument{
			APIVersion: model.APIVersion, Kind: "Event", Time: ev.Time, Pod: ev.Pod, Type: string(ev.Kind),
			Step: ev.Step, Millis: ev.Took.Milliseconds(), Detail: ev.Detail,
		}
		if ev.Err != nil {
			doc.Error = ev.Err.Error()
		}
		Line(out, doc)
	}
}

// Line prints a value as one line of JSON.
func Line(out *terminal.IO, value any) {
	if text, err := json.Marshal(value); err == nil {
		out.Exclusive(func() {
			out.Out.Write(append(terminal.VisibleJSON(text), '\n')) //nolint:errcheck // a closed pipe ends the process
		})
	}
}
