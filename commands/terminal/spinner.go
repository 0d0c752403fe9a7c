package terminal

import "fmt"

// Spinner shows that something goes on: on a terminal one line with its progress and the time
// it has taken, elsewhere a plain line at its beginning.
type Spinner struct {
	io       *IO
	live     *Live
	progress string
}

// Spin begins to show something that takes its time. Stop has to be called.
func (s *IO) Spin(text string) *Spinner {
	sp := &Spinner{io: s}
	if !s.ShowsLive() {
		s.Note("%s", text)
		return sp
	}
	began := s.Now()
	sp.live = s.Live(func(int) []string {
		return []string{fmt.Sprintf("%s …%s  %.0fs", text, sp.progress, s.Now().Sub(began).Seconds())}
	})
	return sp
}

// Progress says how far it is.
func (sp *Spinner) Progress(text string) {
	sp.io.mu.Lock()
	defer sp.io.mu.Unlock()
	if text != "" {
		text = "  " + text
	}
	sp.progress = text
}

// Stop takes the line away again.
func (sp *Spinner) Stop() {
	if sp.live != nil {
		sp.live.Stop()
	}
}
