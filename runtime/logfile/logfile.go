// Package logfile reads what a runtime has written of one run of a container: the file that
// is being written, and those that were rotated away before, compressed ones too. A file
// that would fill memory or the disk, or never ends, is refused.
package logfile

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	internalapi "k8s.io/cri-api/pkg/apis"
	crilogs "k8s.io/cri-client/pkg/logs"
	"k8s.io/klog/v2"
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
	// Path is the file that is written, or was written last.
	Path        string
	ContainerID string
}

// Read shows the log. The runtime is asked whether the container still runs; only Follow
// needs it.
func (l Log) Read(ctx context.Context, opts *Options, runtime internalapi.RuntimeService, stdout, stderr io.Writer) error {
	ctx = quiet(ctx)
	pieces, err := piecesOf(l.Path, opts)
	if err != nil {
		return err
	}
	limit := &byteLimit{max: opts.LimitBytes}
	for i := range pieces {
		last := i == len(pieces)-1
		err := pieces[i].read(func(file string, tail *int64) error {
			return crilogs.ReadLogs(ctx, file, l.ContainerID, &crilogs.LogOptions{
				TailLines: tail, LimitBytes: limit.left(), Since: opts.Since, Follow: opts.Follow && last, Timestamp: opts.Timestamps,
			}, runtime, limit.counting(stdout), limit.counting(stderr))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// End shows the last lines of the file that was written last, as long as they lie in so
// many bytes at its end.
func (l Log) End(ctx context.Context, lines, span int64, w io.Writer) error {
	if err := check(l.Path, span); err != nil {
		return err
	}
	return crilogs.ReadLogs(quiet(ctx), l.Path, l.ContainerID, &crilogs.LogOptions{TailLines: &lines}, nil, w, w)
}

// quiet keeps the library from writing logs of its own.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// byteLimit counts what is shown of a container over all pieces of its log.
type byteLimit struct {
	max     *int64
	written atomic.Int64
}

// left is what may still be shown; nil when there is no limit.
func (l *byteLimit) left() *int64 {
	if l.max == nil {
		return nil
	}
	n := max(*l.max-l.written.Load(), 0)
	return &n
}

func (l *byteLimit) counting(w io.Writer) io.Writer { return &countingWriter{w: w, limit: l} }

type countingWriter struct {
	w     io.Writer
	limit *byteLimit
}

// Write writes and counts.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.limit.written.Add(int64(n))
	return n, err
}
