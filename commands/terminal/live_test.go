package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// terminalOf returns an IO with a terminal of unknown size.
func terminalOf(b *bytes.Buffer, env map[string]string) *IO {
	return NewIO(&Env{Err: b, ErrTTY: true, Now: time.Now, Getenv: func(name string) string { return env[name] }})
}

// TestLiveLinesStayBelow: other output appears above the lines, and Stop removes them.
func TestLiveLinesStayBelow(t *testing.T) {
	var b bytes.Buffer
	s := terminalOf(&b, nil)
	l := s.Live(func(int) []string { return []string{"one\x1b[2J", "two"} })
	s.Note("above")
	l.Stop()
	s.Note("after")
	text := b.String()
	const drawn, erased = "one\\x1b[2J\ntwo\n", "\x1b[2A\r\x1b[J"
	if want := drawn + erased + "above\n" + drawn; !strings.HasPrefix(text, want) {
		t.Errorf("%q, want %q first", text, want)
	}
	if want := erased + "after\n"; !strings.HasSuffix(text, want) {
		t.Errorf("%q, want %q last", text, want)
	}
}

// TestLiveLinesFit: each line is cut to the width of the terminal, and lines without space are counted.
func TestLiveLinesFit(t *testing.T) {
	var b bytes.Buffer
	s := terminalOf(&b, nil)
	lines := make([]string, 40)
	for i := range lines {
		lines[i] = strings.Repeat("界", 60)
	}
	s.Live(func(int) []string { return lines }).Stop()
	text, _, _ := strings.Cut(b.String(), "\x1b")
	shown := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(shown) != heightUnknown-2 || shown[len(shown)-1] != "  … and 19 more" ||
		shown[0] != strings.Repeat("界", 39)+"…" {
		t.Errorf("%d lines: %q … %q", len(shown), shown[0], shown[len(shown)-1])
	}
}

// TestNoLiveLines: no lines are drawn where they cannot be redrawn.
func TestNoLiveLines(t *testing.T) {
	var b bytes.Buffer
	if terminalOf(&b, map[string]string{"TERM": "dumb"}).ShowsLive() {
		t.Error("a dumb terminal")
	}
	if s := terminalOf(&b, nil); !s.ShowsLive() {
		t.Error("a terminal")
	}
}

// TestWrap: lines break between words, and a text that does not fit is cut and counted.
func TestWrap(t *testing.T) {
	if got := Wrap("one two three fourteen", 8); got != "one two\nthree\nfourteen" {
		t.Errorf("%q", got)
	}
	if got := Fit("first\nsecond\nthird\n", 4, 2); got != "fir…\n… a…\n" {
		t.Errorf("%q", got)
	}
	if got := Fit("first\n", 9, 2); got != "first\n" {
		t.Errorf("%q", got)
	}
}
