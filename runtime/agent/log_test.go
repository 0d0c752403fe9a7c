package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestNotes: what has no effect is written once while a source has it, and again if it comes back.
func TestNotes(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)))
	for _, notes := range [][]string{{"a", "b"}, {"b"}, {"a", "b"}} {
		l.tellNotes("/one", notes)
		l.tellNotes("/two", []string{"c"})
	}
	for text, want := range map[string]int{"note=a": 2, "note=b": 1, "note=c": 1} {
		if got := strings.Count(out.String(), text); got != want {
			t.Errorf("%s is written %d times, want %d:\n%s", text, got, want, out.String())
		}
	}
}
