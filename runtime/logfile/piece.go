package logfile

import (
	"os"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
)

// piece is one file of a run's log, and how many of its last lines are shown.
type piece struct {
	name string
	// tail is nil for all lines.
	tail *int64
}

// chosen returns the files of a run's log in the order they were written. It omits files rotated before Since or that
// are before the last lines. It opens the last file.
func (r *reading) chosen() ([]piece, error) {
	files, err := r.open()
	if err != nil {
		return nil, err
	}
	var pieces []piece
	for _, f := range files {
		if r.opts.Since.IsZero() || !f.info.ModTime().Before(r.opts.Since) {
			pieces = append(pieces, piece{name: f.name})
		}
	}
	if r.current != nil {
		pieces = append(pieces, piece{name: r.name})
	}
	if r.opts.Tail == nil {
		return pieces, nil
	}
	return r.last(pieces, *r.opts.Tail)
}

// open opens the current file and lists the rotated ones before it. During a rotation there may be no current file: the
// runtime then still writes to the last rotated file.
func (r *reading) open() (before []aside, err error) {
	// Open the file first: if it is rotated now, it is found among the rotated files, and the later ones there are its
	// successors.
	if r.current, err = r.dir.open(r.dir.base); safefs.IgnoreMissing(err) != nil {
		return nil, err
	}
	r.name = r.dir.base
	files, err := r.dir.rotated()
	if err != nil {
		return nil, err
	}
	last := len(files) - 1
	if r.current == nil && last >= 0 && !strings.HasSuffix(files[last].name, Compressed) {
		r.name = files[last].name
		if r.current, err = r.dir.open(r.name); safefs.IgnoreMissing(err) != nil {
			return nil, err
		}
		return files[:last], nil
	}
	for i, f := range files {
		if r.current != nil && os.SameFile(f.info, r.current.info) {
			return files[:i], nil
		}
	}
	return files, nil
}

// last returns the files with the last lines.
func (r *reading) last(pieces []piece, tail int64) ([]piece, error) {
	for i := range slices.Backward(pieces) {
		lines, err := r.count(pieces[i].name, tail)
		if err != nil {
			return nil, err
		}
		if lines >= tail || i == 0 {
			pieces[i].tail = &tail
			return pieces[i:], nil
		}
		tail -= lines
	}
	return nil, nil
}

// count counts the lines of a file, up to a limit.
func (r *reading) count(name string, limit int64) (int64, error) {
	s, err := r.dir.open(name)
	if err != nil {
		return 0, safefs.IgnoreMissing(err)
	}
	lines, err := s.count(limit)
	return lines, s.closed(err)
}
