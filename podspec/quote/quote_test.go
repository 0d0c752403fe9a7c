package quote

import (
	"strings"
	"testing"
)

// TestQuoted checks that quoted text stays on one line, is not interpreted by a terminal, and is not too long.
func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"a b": `"a b"`, "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, strings.Repeat("x", 500): `"` + strings.Repeat("x", 200) + `"…`,
	} {
		if got := Value(text); got != want {
			t.Errorf("%.20q: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"a é b":    "a é b",
		"a\nb":     `a\nb`,
		"a\u202eb": `a\u202eb`,
		"a\xffb":   `a\xffb`,
		"\uFFFD":   "\uFFFD",
	} {
		if got := OneLine(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
