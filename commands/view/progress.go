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

// Progress shows running steps and the waits of pods. On a terminal it redraws lines until they end. Elsewhere it
// prints one plain line for each ended step.
type Progress struct {
	io     *terminal.IO
	colors terminal.Colors
	// several is set for more than one pod. Lines then contain the name of the pod.
	several bool
	// moving has the contents of the live lines. It is nil without a terminal.
	moving *moving
	live   *terminal.Live
}

// NewProgress returns a Progress for a number of pods. The caller must call Stop.
func NewProgress(out *terminal.IO, pods int) *Progress {
	p := &Progress{io: out, colors: out.ErrColors(), several: pods > 1}
	if out.ShowsLive() {
		p.moving = &moving{now: out.Now, several: p.several, failures: map[string]bool{}}
		p.live = out.Live(p.moving.lines)
	}
	return p
}

// Stop removes the live lines.
func (p *Progress) Stop() {
	if p.live != nil {
		p.live.Stop()
	}
}

// Live reports whether running steps are shown.
func (p *Progress) Live() bool { return p.live != nil }

// Report shows one event.
func (p *Progress) Report(ev executor.Event) { p.io.Exclusive(func() { p.report(ev) }) }

// Obstacles shows what a pod waits for now.
func (p *Progress) Obstacles(pod model.PodRef, list []wait.Obstacle) {
	if p.moving != nil {
		p.io.Exclusive(func() { p.moving.waits(pod, list) })
	}
}

// report prints one event. On a terminal, it does not print a repeated failure again, because the live lines show the
// next attempt.
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
		step, detail := terminal.PrintableLine(p.step(ev)), terminal.PrintableLine(indented(ev.Detail))
		p.print(p.colors.Green("  ✓ "), step+took+detail)
	case executor.StepFailed:
		p.print(p.colors.Red("  ✗ "), terminal.PrintableLine(p.step(ev)+"  "+failureReason(ev.Err)))
	case executor.StepSkipped:
		p.print(p.colors.Dim("  - "), terminal.PrintableLine(p.step(ev)+"  skipped"))
	case executor.Warning:
		p.print(p.colors.Yellow("  ! "), terminal.PrintableLine(p.pod(ev)+ev.Detail))
	}
}

// failureReason returns the kubelet's reason for a failure and the error. It drops the name of the step, which the line
// already has.
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

// print writes one line. The text must already be printable.
func (p *Progress) print(mark, text string) {
	fmt.Fprintln(p.io.Err, mark+text) //nolint:errcheck // a lost line is harmless
}

// step describes a step in the words of the plan.
func (p *Progress) step(ev executor.Event) string {
	return p.pod(ev) + stepName(ev.Step) + indented(ev.Step.Detail())
}

// stepName returns the action of a step and its object.
func stepName(s *plan.Step) string { return fmt.Sprintf("%-7s %s", s.Kind.Verb(), s.Object()) }

// pod returns the name of the pod if there are several pods.
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
