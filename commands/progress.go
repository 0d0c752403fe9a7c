package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// progress shows what happens while it happens: on a terminal the step that runs
// is shown until it has ended, elsewhere one plain line per step.
type progress struct {
	w     io.Writer
	tty   bool
	paint painter
	// several tells that more than one pod is worked on, so that lines name it.
	several bool
}

// progress shows what happens to one pod, or to several side by side: one event at a time.
func (g *globals) progress(several bool) func(runtime.Event) {
	show := &progress{w: g.env.Err, tty: g.env.ErrTTY && !several, paint: g.paint(g.env.ErrTTY), several: several}
	return func(ev runtime.Event) {
		g.lines.Lock()
		defer g.lines.Unlock()
		show.report(ev)
	}
}

// report prints one event.
func (p *progress) report(ev runtime.Event) {
	if ev.Step != nil && ev.Step.Kind == plan.CheckContainer && ev.Kind != runtime.StepFailed {
		return
	}
	switch ev.Kind {
	case runtime.StepStarted, runtime.StepProgress:
		if p.tty {
			fmt.Fprintf(p.w, "\r\x1b[K    %s …", printableLine(p.line(ev)+detail(ev.Detail))) //nolint:errcheck // progress is a courtesy
		}
	case runtime.StepDone:
		p.print(p.paint.symbol(symbolCreate, "  ✓ "), printableLine(p.line(ev))+p.took(ev)+printableLine(detail(ev.Detail)))
	case runtime.StepFailed:
		p.print(p.paint.symbol(symbolStop, "  ✗ "), printableLine(p.line(ev)+"  "+failureText(ev.Err)))
	case runtime.StepSkipped:
		p.print(p.paint.dim("  - "), printableLine(p.line(ev)+"  left out"))
	case runtime.Warning:
		p.print(p.paint.symbol(symbolUpdate, "  ! "), printableLine(p.of(ev)+ev.Detail))
	}
}

// failureText is the kubelet's word for a failure. The whole story is told at the
// end, where errors are looked for.
func failureText(err error) string {
	if step, ok := errors.AsType[*runtime.StepError](err); ok {
		return string(step.Reason)
	}
	return err.Error()
}

// print writes one line; what is in it of others is printable already.
func (p *progress) print(mark, text string) {
	if p.tty {
		mark = "\r\x1b[K" + mark
	}
	fmt.Fprintln(p.w, mark+text) //nolint:errcheck // progress is a courtesy
}

// line names the step in the words of the plan.
func (p *progress) line(ev runtime.Event) string {
	text := p.of(ev) + fmt.Sprintf("%-7s %s", ev.Step.Kind.Verb(), ev.Step.Object())
	if d := ev.Step.Detail(); d != "" {
		text += "  " + d
	}
	return text
}

// of names the pod where it does not go without saying.
func (p *progress) of(ev runtime.Event) string {
	if p.several {
		return ev.Pod.String() + "  "
	}
	return ""
}

func (p *progress) took(ev runtime.Event) string {
	return p.paint.dim(fmt.Sprintf("  %.2fs", ev.Took.Seconds()))
}

func detail(text string) string {
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

// writeEvent prints an event as one line of JSON.
func (g *globals) writeEvent(ev runtime.Event) {
	doc := eventDocument{
		APIVersion: model.APIVersion, Kind: "Event", Time: ev.Time, Pod: ev.Pod, Type: string(ev.Kind),
		Step: ev.Step, Millis: ev.Took.Milliseconds(), Detail: ev.Detail,
	}
	if ev.Err != nil {
		doc.Error = ev.Err.Error()
	}
	if text, err := json.Marshal(doc); err == nil {
		g.lines.Lock()
		defer g.lines.Unlock()
		g.env.Out.Write(append(visibleJSON(text), '\n')) //nolint:errcheck // a closed pipe ends the process
	}
}
