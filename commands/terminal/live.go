package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"
	"golang.org/x/term"
)

// liveTick is the time between two redraws of the live lines.
const liveTick = 200 * time.Millisecond

// The size to assume if the terminal does not report one.
const (
	widthUnknown  = 80
	heightUnknown = 24
)

// Live has the last lines of a terminal, which are redrawn while a command runs. Other output appears above them.
type Live struct {
	io    *IO
	lines func(width int) []string
	// drawn has the widths of the lines on the terminal, in columns.
	drawn []int
	done  chan struct{}
	gone  chan struct{}
}

// ShowsLive reports whether stderr is a terminal that can redraw lines.
func (s *IO) ShowsLive() bool { return s.ErrTTY && s.Getenv("TERM") != "dumb" }

// Live starts to draw lines at the end of the terminal on stderr. It calls lines while it blocks other writes, and cuts
// the result to the width. The caller must call Stop. Only one Live can exist at a time.
func (s *IO) Live(lines func(width int) []string) *Live {
	l := &Live{io: s, lines: lines, done: make(chan struct{}), gone: make(chan struct{})}
	s.Exclusive(func() {
		s.live = l
		l.draw()
	})
	go l.run()
	return l
}

// Stop removes the lines.
func (l *Live) Stop() {
	close(l.done)
	<-l.gone
	l.io.Exclusive(func() {
		l.erase()
		l.io.live = nil
	})
}

// run redraws the lines until Stop is called.
func (l *Live) run() {
	defer close(l.gone)
	tick := time.NewTicker(liveTick)
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-tick.C:
			l.io.Exclusive(func() {})
		}
	}
}

// above writes above the lines.
func (l *Live) above(write func()) {
	l.erase()
	write()
	if l.io.live == l {
		l.draw()
	}
}

// erase removes the lines from the terminal. Lines are wrapped if the terminal has become narrower.
func (l *Live) erase() {
	if len(l.drawn) == 0 {
		return
	}
	width, _ := sizeOf(l.io.Err)
	rows := 0
	for _, w := range l.drawn {
		rows += max(1, (w+width-1)/width)
	}
	l.drawn = nil
	fmt.Fprintf(l.io.Err, "\x1b[%dA\r\x1b[J", rows) //nolint:errcheck // a lost line is harmless
}

// draw writes the lines at the end of the terminal, as many as fit.
func (l *Live) draw() {
	width, height := sizeOf(l.io.Err)
	lines := l.lines(width - 1)
	if most := max(1, height-2); len(lines) > most {
		left := len(lines) - most + 1
		lines = append(lines[:most-1], fmt.Sprintf("  … and %d more", left))
	}
	var b strings.Builder
	for _, line := range lines {
		line = Cut(PrintableLine(line), width-1)
		l.drawn = append(l.drawn, displaywidth.String(line))
		b.WriteString(line + "\n")
	}
	io.WriteString(l.io.Err, b.String()) //nolint:errcheck // a lost line is harmless
}

// OutSize returns the size of the terminal on stdout, in columns and rows.
func (e *Env) OutSize() (width, height int) { return sizeOf(e.Out) }

func sizeOf(w io.Writer) (width, height int) {
	if file, ok := w.(*os.File); ok {
		if w, h, err := term.GetSize(int(file.Fd())); err == nil && w > 1 && h > 1 {
			return w, h
		}
	}
	return widthUnknown, heightUnknown
}

// Cut shortens a line to a number of columns. An ellipsis marks the omitted part.
func Cut(line string, width int) string {
	return displaywidth.TruncateString(line, max(width, 1), "…")
}

// Wrap breaks a line between words at a number of columns. It does not break longer words.
func Wrap(line string, width int) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(line, " ") {
		w := displaywidth.String(word)
		switch {
		case i == 0:
		case used+1+w > width:
			b.WriteString("\n")
			used = 0
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(word)
		used += w
	}
	return b.String()
}

// Fit cuts a text to the columns and rows of a terminal. The last line has the number of omitted lines.
func Fit(text string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if left := len(lines) - max(height, 1); left > 0 {
		lines = append(lines[:max(height, 1)-1], fmt.Sprintf("… and %d more", left+1))
	}
	for i := range lines {
		lines[i] = Cut(lines[i], width)
	}
	return strings.Join(lines, "\n") + "\n"
}
