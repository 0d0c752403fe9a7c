package terminal

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/podctl/podctl/runtime/safefs"
)

// IO is the streams of one command. Pods are worked on concurrently, and their lines are
// written one at a time.
type IO struct {
	Env
	// Color is the value of --color.
	Color string

	mu    sync.Mutex
	noted map[string]bool
	// live is what is drawn at the end of the terminal; nil for nothing.
	live *Live
}

// NewIO returns the streams of an environment.
func NewIO(env *Env) *IO { return &IO{Env: *env, noted: map[string]bool{}} }

// Print writes a line of the result.
func (s *IO) Print(format string, args ...any) {
	s.Exclusive(func() { writeLines(s.Out, format, args...) })
}

// PrintBold writes a line of the result, in bold where the result has colours.
func (s *IO) PrintBold(text string) {
	s.Exclusive(func() {
		fmt.Fprintln(s.Out, s.OutColors().Bold(PrintableLines(text))) //nolint:errcheck // a closed pipe ends the process
	})
}

// Note writes a line beside the result, for people.
func (s *IO) Note(format string, args ...any) {
	s.Exclusive(func() { writeLines(s.Err, format, args...) })
}

// NoteOnce is Note for what would otherwise be repeated with every look.
func (s *IO) NoteOnce(format string, args ...any) {
	s.Exclusive(func() {
		if text := fmt.Sprintf(format, args...); !s.noted[text] {
			s.noted[text] = true
			writeLines(s.Err, "%s", text)
		}
	})
}

// Exclusive calls a function that writes, and lets no other write meanwhile.
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

// Into writes a file as a whole or not at all, for its owner alone; - is standard output. A
// device or a pipe is written to and not replaced.
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
