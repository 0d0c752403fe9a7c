package logfile

import (
	"bufio"
	"bytes"
	"io"
	"sync"
)

// Shared lets several containers write to one stream, a whole line at a time.
type Shared struct{ mu sync.Mutex }

// Lines returns a writer to one of the streams, with a prefix before each line.
func (s *Shared) Lines(w io.Writer, prefix string) *Lines {
	return &Lines{shared: s, w: w, prefix: prefix}
}

// Lines is a writer that passes on whole lines.
type Lines struct {
	shared *Shared
	w      io.Writer
	prefix string
	rest   bytes.Buffer
}

// Write passes on whole lines with the prefix. Without a prefix, it passes on bytes unchanged.
func (l *Lines) Write(p []byte) (int, error) {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	if l.prefix == "" {
		return l.w.Write(p)
	}
	l.rest.Write(p)
	out := bufio.NewWriter(l.w)
	for {
		line, err := l.rest.ReadBytes('\n')
		if err != nil && len(line) < longestLine {
			l.rest.Write(line)
			return len(p), out.Flush()
		}
		out.WriteString(l.prefix) //nolint:errcheck // Flush reports it
		out.Write(line)           //nolint:errcheck // Flush reports it
		if err != nil {
			out.WriteByte('\n') //nolint:errcheck // Flush reports it
		}
	}
}

// longestLine limits the buffered part of a line without an end, in bytes.
const longestLine = 64 << 10

// Flush writes the rest of a log without a final newline, often the last output before a crash.
func (l *Lines) Flush() {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	if l.rest.Len() > 0 {
		io.WriteString(l.w, l.prefix+l.rest.String()+"\n") //nolint:errcheck // a closed pipe ends the process
		l.rest.Reset()
	}
}
