package remote

import (
	"io"
	"time"
)

// DelayEnd returns an input for a running process whose end is not passed on too early. It returns nil for nil.
func DelayEnd(in io.Reader) io.Reader {
	if in == nil {
		return nil
	}
	return &delayedEnd{Reader: in}
}

// attachMin is the minimum duration of an attached input. containerd closes the outputs when the input ends. If they
// are not attached by then, they stay open forever and the stream never ends.
const attachMin = 200 * time.Millisecond

type delayedEnd struct {
	io.Reader
	started time.Time
}

// Read reads from the input.
func (l *delayedEnd) Read(p []byte) (int, error) {
	if l.started.IsZero() {
		l.started = time.Now()
	}
	n, err := l.Reader.Read(p)
	if err != nil {
		time.Sleep(time.Until(l.started.Add(attachMin)))
	}
	return n, err
}
