package listwatch

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestLog checks that each failure of the list and of the watch is logged once, and that the watch works again.
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
	const want = `level=WARN msg="cannot list the Services in the API server; pods keep running" error=a
level=WARN msg="cannot watch the Services in the API server; pods keep running" error=a
level=INFO msg="the watch of the Services in the API server works again"
level=WARN msg="cannot watch the Services in the API server; pods keep running" error=a
`
	if text.String() != want {
		t.Error(text.String())
	}
}
