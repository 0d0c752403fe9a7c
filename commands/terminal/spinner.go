package terminal

import "fmt"

// Spinner shows that a task is running. On a terminal, it is one line with the progress and the elapsed time.
// Elsewhere, it is a plain line at the start.
type Spinner struct {
	io       *IO
	live     *Live
	progress string
}

// Spin starts a spinner. The caller must call Stop.
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

// Progress sets the progress to show.
func (sp *Spinner) Progress(text string) {
	sp.io.mu.Lock()
	defer sp.io.mu.Unlock()
	if text != "" {
		text = "  " + text
	}
	sp.progress = text
}

// Stop removes the line.
func (sp *Spinner) Stop() {
	if sp.live != nil {
		sp.live.Stop()
	}
}
