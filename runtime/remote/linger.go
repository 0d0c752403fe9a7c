package remote

import (
	"io"
	"time"
)

// Lingering returns an input for a running process whose end is not passed on too early. It returns nil for nil.
func Lingering(in io.Reader) io.Reader {
	if in == nil {
		return nil
	}
	return &lingering{Reader: in}
}

// linger is the minimum duration of an attached input. containerd closes the outputs when the input ends. If they are
// not attached by then, they stay open forever and the stream never ends.
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
