package remote

import (
	"io"
	"time"
)

// Lingering is an input for a process that runs already, whose end is not passed on too
// early; nil for nil.
func Lingering(in io.Reader) io.Reader {
	if in == nil {
		return nil
	}
	return &lingering{Reader: in}
}

// linger is how long an attached input lasts at least. containerd takes the outputs away
// when the input ends; where they have not been attached by then, they stay for good, and
// the stream never ends.
const linger = 200 * time.Millisecond

type lingering struct {
	io.Reader
	started time.Time
}

// Read reads from the input.
func (l *lingering) Read(p []byte) (int, error) {
	if l.started.IsZero() {
		l.started = time.Now()
	}
	n, err := l.Reader.Read(p)
	if err != nil {
		time.Sleep(time.Until(l.started.Add(linger)))
	}
	return n, err
}
