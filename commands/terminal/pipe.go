package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// ErrBrokenPipe ends a command whose output was closed.
var ErrBrokenPipe = errors.New("the output was closed")

// KeepSIGPIPE lets a write to a closed pipe fail instead of ending the process, for a command
// that has to clean up. The function that it returns ends that.
func KeepSIGPIPE() (stop func()) {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, unix.SIGPIPE)
	return func() { signal.Stop(pipes) }
}

// EndOnBrokenPipe ends a command by ErrBrokenPipe when its output is closed.
func (s *IO) EndOnBrokenPipe(end context.CancelCauseFunc) {
	s.Out, s.Err = pipeWriter{s.Out, end}, pipeWriter{s.Err, end}
}

// pipeWriter is an output that ends a command by ErrBrokenPipe.
type pipeWriter struct {
	io.Writer
	end context.CancelCauseFunc
}

// Write writes, and ends the command when the pipe is closed.
func (p pipeWriter) Write(text []byte) (int, error) {
	n, err := p.Writer.Write(text)
	if errors.Is(err, unix.EPIPE) {
		p.end(ErrBrokenPipe)
	}
	return n, err
}
