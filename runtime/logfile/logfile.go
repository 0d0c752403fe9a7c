package logfile

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/sleep"
)

// Options select the part of a log to show.
type Options struct {
	// Follow continues with new lines while the container runs.
	Follow     bool
	Timestamps bool
	// Tail is the number of lines from the end; nil means all.
	Tail *int64
	// Since, if set, omits older lines.
	Since time.Time
	// LimitBytes limits the output.
	LimitBytes *int64
}

// Log is the log of one run of a container.
type Log struct {
	// Path is the current file, or the last one after the run. It is empty if the runtime reports none.
	Path string
}

// Running reports whether a container still runs.
type Running func(ctx context.Context) (bool, error)

// Read shows the log. A missing log is empty. Read calls running only with Follow. A nil writer omits its stream, which
// then does not count for LimitBytes.
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

// reading is a pass through the files of one log.
type reading struct {
	dir  *logDir
	opts *Options
	out  *output
	// current is the current file, or the last one after the run; nil if there is none. name is its name when it was
	// opened.
	current *source
	name    string
}

func (r *reading) close() error {
	if r.current == nil {
		return nil
	}
	return r.current.close()
}

// pieces shows the existing files, the oldest first, and leaves current at its end.
func (r *reading) pieces(ctx context.Context) error {
	pieces, err := r.chosen()
	if err == nil && r.opts.Follow && len(pieces) > 1 {
		// The file before the last may have been rotated just now, so the runtime may still write to it.
		err = sleep.For(ctx, handover)
	}
	for i := 0; err == nil && i < len(pieces); i++ {
		err = r.show(ctx, pieces[i])
	}
	return err
}

// show writes a file, or its last lines. With last lines, it shows an incomplete line at the end only if the file is
// followed, or if there are fewer lines.
func (r *reading) show(ctx context.Context, p piece) (err error) {
	s := r.current
	if r.current == nil || p.name != r.name {
		// The file was removed by a rotation meanwhile.
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

// End shows the last lines of the current file, within the given number of bytes at its end.
func (l Log) End(ctx context.Context, lines, span int64, w io.Writer) (err error) {
	if l.Path == "" {
		return errors.New("the runtime does not report the path of the log")
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
