package terminal

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/podctl/podctl/runtime/safefs"
)

// IO has the streams of one command. It is safe for concurrent use and writes lines one at a time.
type IO struct {
	Env
	// Color is the value of --color.
	Color string

	mu    sync.Mutex
	noted map[string]bool
	// live has the lines at the end of the terminal. It is nil if there are none.
	live *Live
}

// NewIO returns the streams of an environment.
func NewIO(env *Env) *IO { return &IO{Env: *env, noted: map[string]bool{}} }

// Print writes a line of the result to stdout.
func (s *IO) Print(format string, args ...any) {
	s.Exclusive(func() { writeLines(s.Out, format, args...) })
}

// PrintBold writes a line of the result to stdout, in bold if the output has colours.
func (s *IO) PrintBold(text string) {
	s.Exclusive(func() {
		bold := s.OutColors().Bold(PrintableLines(text))
		fmt.Fprintln(s.Out, bold) //nolint:errcheck // a closed pipe ends the process
	})
}

// Note writes a note for people to stderr.
func (s *IO) Note(format string, args ...any) {
	s.Exclusive(func() { writeLines(s.Err, format, args...) })
}

// NoteOnce writes a note like Note, unless the same text was noted before.
func (s *IO) NoteOnce(format string, args ...any) {
	s.Exclusive(func() {
		if text := fmt.Sprintf(format, args...); !s.noted[text] {
			s.noted[text] = true
			writeLines(s.Err, "%s", text)
		}
	})
}

// Exclusive calls a function that writes, and blocks all other writes until it returns.
func (s *IO) Exclusive(write func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live != nil {
		s.live.above(write)
		return
	}
	write()
}

func writeLines(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, PrintableLines(fmt.Sprintf(format, args...))) //nolint:errcheck // a closed pipe ends the process
}

// Into replaces a file atomically. Only the owner can read it. The path - is stdout. Devices and pipes are written to
// and not replaced.
func (s *IO) Into(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(s.Out)
	}
	f, err := safefs.Create(path)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Commit()
	}
	return errors.Join(err, f.Close())
}
