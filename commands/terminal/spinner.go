package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// spinnerInterval is how often a line on the terminal is written anew.
const spinnerInterval = 200 * time.Millisecond

// Spinner shows that something goes on: on a terminal one line with its progress and the time
// it has taken, elsewhere a plain line at its beginning.
type Spinner struct {
	w    io.Writer
	text string
	now  func() time.Time
	done chan struct{}
	gone chan struct{}

	mu       sync.Mutex
	progress string
}

// Spin begins to show something that takes its time. Stop has to be called.
func (s *IO) Spin(text string) *Spinner {
	sp := &Spinner{w: s.Err, text: PrintableLine(text), now: s.Now, done: make(chan struct{}), gone: make(chan struct{})}
	if !s.ErrTTY {
		s.Note("%s", text)
		close(sp.gone)
		return sp
	}
	go sp.run()
	return sp
}

// Progress says how far it is.
func (sp *Spinner) Progress(text string) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.progress = text
}

// Stop takes the line away again.
func (sp *Spinner) Stop() {
	close(sp.done)
	<-sp.gone
}

func (sp *Spinner) run() {
	defer close(sp.gone)
	began := sp.now()
	tick := time.NewTicker(spinnerInterval)
	defer tick.Stop()
	for {
		sp.line(sp.now().Sub(began))
		select {
		case <-sp.done:
			fmt.Fprint(sp.w, ClearLine) //nolint:errcheck // progress is a courtesy
			return
		case <-tick.C:
		}
	}
}

func (sp *Spinner) line(took time.Duration) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	progress := ""
	if sp.progress != "" {
		progress = "  " + PrintableLine(sp.progress)
	}
	fmt.Fprint(sp.w, Overwrite(fmt.Sprintf("%s …%s  %.0fs", sp.text, progress, took.Seconds()))) //nolint:errcheck // progress is a courtesy
}

// Overwrite writes a line of a terminal anew. One that is too long is cut off and not
// continued on the next, where it would stay.
func Overwrite(line string) string { return ClearLine + "\x1b[?7l" + line + "\x1b[?7h" }
