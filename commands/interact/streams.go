package interact

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/remote"
	runtimesession "github.com/podctl/podctl/runtime/session"
	"github.com/podctl/podctl/runtime/state"
)

// streamOptions are the flags of commands that connect the user to a process.
type streamOptions struct {
	container selection.Container
	stdin     bool
	tty       bool
}

func (o *streamOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	o.container.Register(f, "Print only the output of the process")
	f.BoolVarP(&o.stdin, "stdin", "i", false, "Pass stdin to the process")
	f.BoolVarP(&o.tty, "tty", "t", false, "Allocate a terminal for the process")
}

// streams are the user's streams for one process.
type streams struct {
	io         *terminal.IO
	stdin, tty bool
	// running is set for a process that already runs. Whether it has a terminal is fixed, and its streams only end if
	// they are requested accordingly.
	running bool
	// detach are the keys that end the connection and leave the process running.
	detach []byte
}

// connect connects the streams, in raw mode if both ends have a terminal. It reports whether the process has written
// anything.
func (s *streams) connect(
	ctx context.Context, call func(context.Context, *remote.Streams) error,
) (wrote bool, err error) {
	var seen atomic.Bool
	r := &remote.Streams{Out: watchedWriter{s.io.Out, &seen}, Err: watchedWriter{s.io.Err, &seen}, Terminal: s.tty}
	if s.stdin {
		r.In = s.io.In
	}
	var t *terminal.TTY
	// Raw mode needs both flags. Otherwise, podctl reads no keys, and control keys must work as usual.
	if s.tty && s.stdin {
		t = s.io.Terminal()
		if t == nil && !s.running {
			noteNoTerminal(s.io)
			r.Terminal = false
		}
	}
	if t == nil {
		err = call(ctx, r)
		return seen.Load(), err
	}
	err = t.Raw(ctx, func(ctx context.Context, sizes *terminal.SizeQueue) error {
		return withDetach(ctx, r.In, s.detach, func(ctx context.Context, in io.Reader) error {
			r.Resize, r.In = sizes, in
			return call(ctx, r)
		})
	})
	return seen.Load(), err
}

// watchedWriter records whether anything was written.
type watchedWriter struct {
	io.Writer
	wrote *atomic.Bool
}

// Write writes to the underlying writer.
func (w watchedWriter) Write(p []byte) (int, error) {
	w.wrote.Store(true)
	return w.Writer.Write(p)
}

func noteNoTerminal(out *terminal.IO) {
	out.Note("note: stdin is not a terminal, so none is allocated for the process")
}

// notFoundCode sets the exit code NotFound for an error about a missing pod. It does not change other errors.
func notFoundCode(err error) error {
	if absent := (*state.NotFoundError)(nil); errors.As(err, &absent) {
		return &exit.CodeError{Code: exit.NotFound, Err: err}
	}
	return err
}

// processCode returns the exit code of a process as an error. Errors of podctl itself get other codes.
func processCode(err error) error {
	var ended *remote.ExitError
	var coded *exit.CodeError
	var failed *runtimesession.ExecError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ended):
		return exit.With(ended.Code)
	case errors.As(err, &coded):
		return err
	case errors.As(err, &failed) && failed.NoCommand():
		return &exit.CodeError{Code: exit.NotFound, Err: err}
	}
	return &exit.CodeError{Code: exit.ExecFailed, Err: err}
}
