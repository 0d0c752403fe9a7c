package view

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// TestProgressIsColouredAndSafe: a terminal receives podctl's own colours, but no control characters from manifests and
// runtimes.
func TestProgressIsColouredAndSafe(t *testing.T) {
	var out strings.Builder
	p := &Progress{io: terminal.NewIO(&terminal.Env{Err: &out}), colors: terminal.Colors{On: true}}
	step := &plan.Step{Kind: plan.PullImage, Image: "evil\x1b[2J"}
	p.report(executor.Event{Kind: executor.StepDone, Step: step, Took: time.Second, Detail: "id\x1b]0;"})
	if text := out.String(); strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\x1b]0;") ||
		strings.Contains(text, `\x1b[2m`) || !strings.Contains(text, "\x1b[2m") {
		t.Errorf("%q", text)
	}
}

// TestProgressOnAPipe: there is one line for each ended step, and no line is overwritten.
func TestProgressOnAPipe(t *testing.T) {
	step := &plan.Step{Kind: plan.PullImage, Container: "app", Image: "i\x1b[31m:1"}
	events := []executor.Event{
		{Kind: executor.StepStarted, Step: step},
		{Kind: executor.StepProgress, Step: step, Detail: "10\x07%"},
		{Kind: executor.StepDone, Step: step},
		{Kind: executor.StepFailed, Step: step, Err: errors.New("no\x1bway")},
		{Kind: executor.StepSkipped, Step: step},
		{Kind: executor.Warning, Detail: "careful\r"},
	}
	var b bytes.Buffer
	p := &Progress{io: terminal.NewIO(&terminal.Env{Err: &b})}
	for _, ev := range events {
		p.Report(ev)
	}
	if text := b.String(); notPlain().MatchString(text) || strings.Count(text, "\n") != 4 {
		t.Errorf("%q", text)
	}
}

// TestFailedStepsHaveReasons: the line of a failed step has the kubelet's reason and the error, in one line.
func TestFailedStepsHaveReasons(t *testing.T) {
	var out strings.Builder
	step := &plan.Step{Kind: plan.StartContainer, Container: "a"}
	progress := &Progress{io: terminal.NewIO(&terminal.Env{Err: &out})}
	progress.report(executor.Event{Kind: executor.StepFailed, Step: step, Err: &executor.StepError{
		Step: step, Reason: model.RunContainerError, Err: errors.New("exec: /nope:\nno such file"),
	}})
	if !strings.HasSuffix(out.String(), "  RunContainerError: exec: /nope: no such file\n") {
		t.Errorf("%q", out.String())
	}
	progress = &Progress{io: terminal.NewIO(&terminal.Env{Err: &out})}
	progress.report(executor.Event{Kind: executor.StepFailed, Step: step, Err: &executor.StepError{
		Step: step, Reason: model.Interrupted, Err: context.Canceled,
	}})
	if !strings.HasSuffix(out.String(), "  interrupted\n") {
		t.Errorf("a step that the user interrupted: %q", out.String())
	}
}

// notPlain matches control characters that affect a terminal.
func notPlain() *regexp.Regexp { return regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f]|\x{9b}`) }
