package terminal

import (
	"bytes"
	"testing"
	"time"
)

// TestSpinner: a terminal shows one line with the elapsed time, which is removed at the end. Elsewhere there is one
// plain line.
func TestSpinner(t *testing.T) {
	for tty, want := range map[bool]string{true: "pulling a …  0s\n\x1b[1A\r\x1b[J", false: "pulling a\n"} {
		var b bytes.Buffer
		s := NewIO(&Env{
			Err: &b, ErrTTY: tty, Now: func() time.Time { return time.Unix(0, 0) },
			Getenv: func(string) string { return "" },
		})
		spinner := s.Spin("pulling a")
		spinner.Progress("")
		spinner.Stop()
		if b.String() != want {
			t.Errorf("terminal %t: %q, want %q", tty, b.String(), want)
		}
	}
}
