package terminal

import (
	"bytes"
	"testing"
	"time"
)

// TestSpinner: a terminal sees the time go by on one line, which is taken away at
// the end; elsewhere there is one plain line.
func TestSpinner(t *testing.T) {
	for tty, want := range map[bool]string{true: "\r\x1b[K\x1b[?7lpulling a …  0s\x1b[?7h\r\x1b[K", false: "pulling a\n"} {
		var b bytes.Buffer
		s := NewIO(&Env{Err: &b, ErrTTY: tty, Now: func() time.Time { return time.Unix(0, 0) }})
		spinner := s.Spin("pulling a")
		spinner.Progress("")
		spinner.Stop()
		if b.String() != want {
			t.Errorf("terminal %t: %q, want %q", tty, b.String(), want)
		}
	}
}
