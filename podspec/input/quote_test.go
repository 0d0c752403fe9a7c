package input

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuoted: what was read stays in its line, is not obeyed by a terminal, and is not longer
// than it helps.
func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"a b": `"a b"`, "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, strings.Repeat("x", 500): `"` + strings.Repeat("x", 200) + `"…`,
	} {
		if got := Quote(text); got != want {
			t.Errorf("%.20q: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"a é b": "a é b", "a\nb": `a\nb`, "a\u202eb": `a\u202eb`, "a\xffb": `a\xffb`, "\uFFFD": "\uFFFD"} {
		if got := OneLine(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestReadNamed: a file of exactly the limit is read, a larger one is not.
func TestReadNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadNamed(t.Context(), path, 5); err != nil || string(text) != "12345" {
		t.Errorf("%q %v", text, err)
	}
	var large *TooLargeError
	if text, err := ReadNamed(t.Context(), path, 4); !errors.As(err, &large) || large.Max != 4 || text != nil {
		t.Errorf("%q %v", text, err)
	}
	if _, err := ReadNamed(t.Context(), path+"x", 4); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
