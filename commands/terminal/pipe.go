package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// ErrBrokenPipe is the cause of the end of a command whose output was closed.
var ErrBrokenPipe = errors.New("the output was closed")

// KeepSIGPIPE makes writes to a closed pipe fail instead of ending the process, for a command that must clean up. stop
// restores the default.
func KeepSIGPIPE() (stop func()) {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, unix.SIGPIPE)
	return func() { signal.Stop(pipes) }
}

// EndOnBrokenPipe calls end with ErrBrokenPipe when an output is closed.
func (s *IO) EndOnBrokenPipe(end context.CancelCauseFunc) {
	s.Out, s.Err = pipeWriter{s.Out, end}, pipeWriter{s.Err, end}
}

// pipeWriter calls end with ErrBrokenPipe when a write finds a closed pipe.
type pipeWriter struct {
	io.Writer
	end context.CancelCauseFunc
}

// Write writes to the underlying writer.
func (p pipeWriter) Write(text []byte) (int, error) {
	n, err := p.Writer.Write(text)
	if errors.Is(err, unix.EPIPE) {
		p.end(ErrBrokenPipe)
	}
	return n, err
}
