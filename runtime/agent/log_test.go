package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/executor"
)

// TestNotes checks that a note is logged once while a source has it, and again if it comes back.
func TestNotes(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)))
	for _, notes := range [][]string{{"a", "b"}, {"b"}, {"a", "b"}} {
		l.logNotes("/one", notes)
		l.logNotes("/two", []string{"c"})
	}
	for text, want := range map[string]int{"note=a": 2, "note=b": 1, "note=c": 1} {
		if got := strings.Count(out.String(), text); got != want {
			t.Errorf("%s is written %d times, want %d:\n%s", text, got, want, out.String())
		}
	}
}

// TestInterruptedPasses checks that a pass that is cut short and its current step are not logged as errors.
func TestInterruptedPasses(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)))
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := executor.Event{Kind: executor.StepFailed, Err: errors.New("the call was canceled")}
	p := passResult{err: failed.Err}
	l.logStep(ctx, failed)
	l.logFailure(&p)
	if text := out.String(); strings.Count(text, "level=ERROR") != 2 || p.failureText() == "" {
		t.Errorf("log of a failure:\n%s", text)
	}
	out.Reset()
	cancel(executor.ErrOutdated)
	p.interrupted = true
	l.logStep(ctx, failed)
	l.logFailure(&p)
	if text := out.String(); strings.Contains(text, "ERROR") ||
		!strings.Contains(text, "level=INFO msg=\"step interrupted\"") || p.failureText() != "" {
		t.Errorf("log of an interrupted pass:\n%s", text)
	}
}

// TestTakeoversAreLogged checks that takeovers are logged once as warnings while a source has them.
func TestTakeoversAreLogged(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)))
	one := sources.Takeover("/pods/web.yaml", "pod default/web", time.Time{})
	for _, has := range [][]sources.Problem{{one}, {one}, nil, {one}} {
		l.logTakeovers("/pods", has)
	}
	if text := out.String(); strings.Count(text, "level=WARN msg=\"taken over\" file=/pods/web.yaml note=\"takes over pod default/web") != 2 {
		t.Error(text)
	}
}
