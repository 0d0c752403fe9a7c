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

// streamOptions are the flags of commands that connect the user with a process.
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
	// running says that the process has a terminal of its own already, or none: its streams
	// end only for who takes them as they are.
	running bool
	// detach are the keys that end the connection and leave the process as it is.
	detach []byte
}

// connect connects the streams, in raw mode when there is a terminal at both ends. It reports
// whether the process has written anything.
func (s *streams) connect(ctx context.Context, call func(context.Context, *remote.Streams) error) (wrote bool, err error) {
	var seen atomic.Bool
	r := &remote.Streams{Out: watchedWriter{s.io.Out, &seen}, Err: watchedWriter{s.io.Err, &seen}, Terminal: s.tty}
	if s.stdin {
		r.In = s.io.In
	}
	var t *terminal.TTY
	// Without both, no key is read, and control keys have to work as usual.
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

// watchedWriter passes on what is written, and remembers that something was.
type watchedWriter struct {
	io.Writer
	wrote *atomic.Bool
}

// Write passes a text on.
func (w watchedWriter) Write(p []byte) (int, error) {
	w.wrote.Store(true)
	return w.Writer.Write(p)
}

func noteNoTerminal(out *terminal.IO) {
	out.Note("note: stdin is not a terminal, so the process gets none")
}

// notFoundCode gives an error about a pod that is not there its own code, and leaves one about
// a pod that cannot be looked for.
func notFoundCode(err error) error {
	if absent := (*state.NotFoundError)(nil); errors.As(err, &absent) {
		return &exit.CodeError{Code: exit.NotFound, Err: err}
	}
	return err
}

// processCode passes a process's exit code on, and keeps podctl's own failures apart from it.
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
