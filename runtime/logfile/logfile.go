package logfile

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/sleep"
)

// Options choose what of a log is shown.
type Options struct {
	// Follow goes on with what is being written, for as long as the container runs.
	Follow     bool
	Timestamps bool
	// Tail is the number of lines from the end; nil means all.
	Tail *int64
	// Since leaves out older lines when it is set.
	Since time.Time
	// LimitBytes bounds what is shown.
	LimitBytes *int64
}

// Log is the log of one run of a container.
type Log struct {
	// Path is the file that is written, or was written last; empty when the runtime names none.
	Path string
}

// Running reports whether a container still runs.
type Running func(ctx context.Context) (bool, error)

// Read shows the log. A log that is not there, or not yet, has nothing to show. Only Follow
// asks whether the container still runs.
func (l Log) Read(ctx context.Context, opts *Options, running Running, stdout, stderr io.Writer) (err error) {
	if l.Path == "" {
		return nil
	}
	dir, err := openDir(l.Path)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	out := newOutput(opts, stdout, stderr)
	r := &reading{dir: dir, opts: opts, out: out}
	defer func() { err = errors.Join(err, r.close()) }()
	if err = r.pieces(ctx); err == nil && opts.Follow {
		err = r.follow(ctx, running)
	}
	if errors.Is(err, limitError{}) {
		err = nil
	}
	return errors.Join(err, out.flush())
}

// reading is the way through the files of one log.
type reading struct {
	dir  *logDir
	opts *Options
	out  *output
	// current is the file that is written, or was written last; nil while there is none. It had
	// the name when it was opened.
	current *source
	name    string
}

func (r *reading) close() error {
	if r.current == nil {
		return nil
	}
	return r.current.close()
}

// pieces shows what has been written, the oldest file first, and leaves current where it ends.
func (r *reading) pieces(ctx context.Context) error {
	pieces, err := r.chosen()
	if err == nil && r.opts.Follow && len(pieces) > 1 {
		// The one before the last may have been rotated just now.
		err = sleep.For(ctx, handover)
	}
	for i := 0; err == nil && i < len(pieces); i++ {
		err = r.show(ctx, pieces[i])
	}
	return err
}

// show writes a file, or its last lines. Of a file of which only the last lines are shown, a
// rest without an end of line is shown when it is followed, or when there are fewer lines.
func (r *reading) show(ctx context.Context, p piece) (err error) {
	s := r.current
	if r.current == nil || p.name != r.name {
		// Rotated away meanwhile: it is not there any more.
		if s, err = r.dir.open(p.name); err != nil {
			return safefs.IgnoreMissing(err)
		}
		defer func() { err = errors.Join(err, s.close()) }()
	}
	follow := r.opts.Follow && s == r.current
	if follow {
		err = s.beginFollowing(p.tail)
	} else {
		err = s.begin(p.tail)
	}
	if err == nil {
		err = s.copy(ctx, r.out)
	}
	if err != nil || follow {
		return err
	}
	return s.copyRest(r.out)
}

// End shows the last lines of the file that was written last, as long as they lie in so
// many bytes at its end.
func (l Log) End(ctx context.Context, lines, span int64, w io.Writer) (err error) {
	if l.Path == "" {
		return errors.New("the runtime does not say where the log is")
	}
	dir, err := openDir(l.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	s, err := dir.open(dir.base)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	out := newOutput(&Options{}, w, w)
	if err = s.beginWithin(lines, span); err == nil {
		err = s.copy(ctx, out)
	}
	if err == nil {
		err = s.copyRest(out)
	}
	return errors.Join(err, out.flush())
}
