package commands

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// waitTick is how often a line on the terminal is written anew.
const waitTick = 200 * time.Millisecond

// waiting shows that something goes on: on a terminal one line with what is known
// of it and the time it has taken, elsewhere a plain line at its beginning.
type waiting struct {
	w    io.Writer
	text string
	now  func() time.Time
	mu   sync.Mutex
	told string
	done chan struct{}
	gone chan struct{}
}

// wait begins to show something that takes its time. Its end has to be called.
func (g *globals) wait(text string) *waiting {
	w := &waiting{w: g.env.Err, text: printableLine(text), now: g.env.Now, done: make(chan struct{}), gone: make(chan struct{})}
	if !g.env.ErrTTY {
		g.note("%s", text)
		close(w.gone)
		return w
	}
	go w.show()
	return w
}

// tell says how far it is.
func (w *waiting) tell(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = text
}

// end takes the line away again.
func (w *waiting) end() {
	close(w.done)
	<-w.gone
}

func (w *waiting) show() {
	defer close(w.gone)
	began := w.now()
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for {
		w.line(w.now().Sub(began))
		select {
		case <-w.done:
			fmt.Fprint(w.w, "\r\x1b[K") //nolint:errcheck // progress is a courtesy
			return
		case <-tick.C:
		}
	}
}

func (w *waiting) line(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// A line that is too long is cut off and not continued on the next.
	fmt.Fprintf(w.w, "\r\x1b[K\x1b[?7l%s …%s  %.0fs\x1b[?7h", w.text, detail(printableLine(w.told)), took.Seconds()) //nolint:errcheck // progress is a courtesy
}
