package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// progress shows steps while they run: on a terminal the step that runs is shown until it has
// ended, elsewhere one plain line per step.
type progress struct {
	w      io.Writer
	tty    bool
	colors terminal.Colors
	// several reports whether more than one pod is worked on, so that lines name it.
	several bool
}

// Progress shows what happens to one pod, or to several concurrently.
func Progress(out *terminal.IO, pods int) func(executor.Event) {
	several := pods > 1
	show := &progress{w: out.Err, tty: out.ErrTTY && !several, colors: out.ErrColors(), several: several}
	return func(ev executor.Event) { out.Exclusive(func() { show.report(ev) }) }
}

// report prints one event.
func (p *progress) report(ev executor.Event) {
	if ev.Step != nil && ev.Step.Kind == plan.CheckContainer && ev.Kind != executor.StepFailed {
		return
	}
	switch ev.Kind {
	case executor.StepStarted, executor.StepProgress:
		if p.tty {
			fmt.Fprint(p.w, terminal.Overwrite("    "+terminal.PrintableLine(p.step(ev)+indented(ev.Detail))+" …")) //nolint:errcheck // progress is a courtesy
		}
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
func (p *progress) print(mark, text string) {
	if p.tty {
		mark = terminal.ClearLine + mark
	}
	fmt.Fprintln(p.w, mark+text) //nolint:errcheck // progress is a courtesy
}

// step names the step in the words of the plan.
func (p *progress) step(ev executor.Event) string {
	return p.pod(ev) + fmt.Sprintf("%-7s %s", ev.Step.Kind.Verb(), ev.Step.Object()) + indented(ev.Step.Detail())
}

// pod names the pod where there are several.
func (p *progress) pod(ev executor.Event) string {
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
		if text, err := json.Marshal(doc); err == nil {
			out.Exclusive(func() {
				out.Out.Write(append(terminal.VisibleJSON(text), '\n')) //nolint:errcheck // a closed pipe ends the process
			})
		}
	}
}
