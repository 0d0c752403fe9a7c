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

// TestProgressIsColouredAndSafe: podctl's own colours reach a terminal, those of others
// do not.
func TestProgressIsColouredAndSafe(t *testing.T) {
	var out strings.Builder
	p := &progress{w: &out, colors: terminal.Colors{On: true}}
	step := &plan.Step{Kind: plan.PullImage, Image: "evil\x1b[2J"}
	p.report(executor.Event{Kind: executor.StepDone, Step: step, Took: time.Second, Detail: "id\x1b]0;"})
	if text := out.String(); strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\x1b]0;") || strings.Contains(text, `\x1b[2m`) || !strings.Contains(text, "\x1b[2m") {
		t.Errorf("%q", text)
	}
}

// TestProgressOnAPipe: one line for each step that has ended, none that is
// overwritten.
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
	for _, tty := range []bool{false, true} {
		var b bytes.Buffer
		p := &progress{w: &b, tty: tty}
		for _, ev := range events {
			p.report(ev)
		}
		// On a terminal the line is begun anew and cut off at its end, and that is all that
		// is asked of it.
		text := strings.NewReplacer("\r\x1b[K", "", "\x1b[?7l", "", "\x1b[?7h", "").Replace(b.String())
		if cut := strings.Count(b.String(), "\x1b[?7l"); (cut == 2) != tty || cut != strings.Count(b.String(), "\x1b[?7h") {
			t.Errorf("terminal %v: %d lines are cut off", tty, cut)
		}
		if notPlain().MatchString(text) || strings.Count(text, "\n") != 4 || tty == (text == b.String()) {
			t.Errorf("terminal %v: %q", tty, b.String())
		}
	}
}

// TestFailedStepsSayWhy: the line of a step that failed has the kubelet's word for it and what
// happened, in one line.
func TestFailedStepsSayWhy(t *testing.T) {
	var out strings.Builder
	step := &plan.Step{Kind: plan.StartContainer, Container: "a"}
	(&progress{w: &out}).report(executor.Event{Kind: executor.StepFailed, Step: step, Err: &executor.StepError{
		Step: step, Reason: model.RunContainerError, Err: errors.New("exec: /nope:\nno such file"),
	}})
	if !strings.HasSuffix(out.String(), "  RunContainerError: exec: /nope: no such file\n") {
		t.Errorf("%q", out.String())
	}
	(&progress{w: &out}).report(executor.Event{Kind: executor.StepFailed, Step: step, Err: &executor.StepError{
		Step: step, Reason: model.Interrupted, Err: context.Canceled,
	}})
	if !strings.HasSuffix(out.String(), "  interrupted\n") {
		t.Errorf("what the user ended: %q", out.String())
	}
}

// notPlain is everything that asks a terminal for something.
func notPlain() *regexp.Regexp { return regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f]|\x{9b}`) }
