package listwatch

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

// TestLog checks that each cause is logged once, whether the list or the watch fails, and that the watch works again.
func TestLog(t *testing.T) {
	text := &strings.Builder{}
	strip := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	log := slog.New(slog.NewTextHandler(text, &slog.HandlerOptions{ReplaceAttr: strip}))
	l := &Log{To: log, What: "the Services", Effect: "pods keep running"}
	l.Works(t.Context())
	for range 2 {
		l.Report(t.Context(), "list", errors.New("a"))
		l.Report(t.Context(), "watch", errors.New("a"))
	}
	l.Report(t.Context(), "list", nil)
	l.Works(t.Context())
	l.Works(t.Context())
	l.Report(t.Context(), "watch", errors.New("a"))
	l.Report(t.Context(), "list", &apierror.LoggedError{Err: errors.New("b")})
	l.Report(t.Context(), "watch", errors.New("x cannot watch resource y"))
	l.Report(t.Context(), "list", errors.New("x cannot list resource y"))
	const want = `level=WARN msg="cannot list the Services in the API server; pods keep running" error=a
level=INFO msg="the watch of the Services in the API server works again"
level=WARN msg="cannot watch the Services in the API server; pods keep running" error=a
level=WARN msg="cannot watch the Services in the API server; pods keep running" error="x cannot watch resource y"
`
	if last := l.Last(); last != "x cannot list resource y" {
		t.Errorf("the last failure is %q", last)
	}
	if l.Works(t.Context()); l.Last() != "" {
		t.Errorf("the failure %q lasts", l.Last())
	}
	if text.String() != want+"level=INFO msg=\"the watch of the Services in the API server works again\"\n" {
		t.Error(text.String())
	}
}
