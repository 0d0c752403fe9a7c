package remote

import (
	"context"
	"errors"
	"io"
)

// OutputError reports that the output of a process could not be written.
type OutputError struct{ Err error }

// Error includes the cause.
func (e *OutputError) Error() string { return "forwarding its output: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *OutputError) Unwrap() error { return e.Err }

// Guard calls run with the streams. A write error ends run with an *OutputError, regardless of the result of run.
func Guard(ctx context.Context, s *Streams, run func(context.Context, *Streams) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := run(ctx, s.guarded(stop))
	if unwritten := (*OutputError)(nil); errors.As(context.Cause(ctx), &unwritten) {
		return unwritten
	}
	return err
}

// guarded returns the streams with outputs that call stop on a write error. The library would discard further output
// and report success.
func (s *Streams) guarded(stop func(error)) *Streams {
	with := *s
	if s.Out != nil {
		with.Out = &output{s.Out, stop}
	}
	if s.Err != nil {
		with.Err = &output{s.Err, stop}
	}
	return &with
}

type output struct {
	w    io.Writer
	stop func(error)
}

// Write passes on the output of a process.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.stop(&OutputError{Err: err})
	}
	return n, err
}
