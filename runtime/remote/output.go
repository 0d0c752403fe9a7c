package remote

import (
	"context"
	"errors"
	"io"
)

// OutputError says that what a process wrote could not be passed on.
type OutputError struct{ Err error }

// Error says why.
func (e *OutputError) Error() string { return "passing on its output: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *OutputError) Unwrap() error { return e.Err }

// Guard runs what writes to streams. What cannot be written ends it with an *OutputError,
// whatever becomes of it.
func Guard(ctx context.Context, s *Streams, run func(context.Context, *Streams) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := run(ctx, s.guarded(stop))
	if unwritten := (*OutputError)(nil); errors.As(context.Cause(ctx), &unwritten) {
		return unwritten
	}
	return err
}

// guarded are the streams, with outputs that end them when nothing can be written any more.
// The library would throw away all that still comes, and call it a success.
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

// Write passes on what a process wrote.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.stop(&OutputError{Err: err})
	}
	return n, err
}
