package logfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// piece is one file of a run's log, and how many of its last lines are shown.
type piece struct {
	path string
	// tail is nil for all lines.
	tail *int64
}

// piecesOf lists the files of a run's log in the order in which they were written,
// and leaves out those of which nothing is shown: what was rotated away before the
// time that is asked for, or lies before the last lines.
func piecesOf(path string, opts *Options) ([]piece, error) {
	files, err := rotated(path)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		return strings.HasSuffix(file, ".tmp") || err != nil || !info.Mode().IsRegular() ||
			(!opts.Since.IsZero() && info.ModTime().Before(opts.Since))
	})
	files = append(files, path)
	if opts.Tail == nil {
		pieces := make([]piece, 0, len(files))
		for _, file := range files {
			pieces = append(pieces, piece{path: file})
		}
		return pieces, nil
	}
	return lastPieces(files, *opts.Tail)
}

// lastPieces are the files in which the last lines are.
func lastPieces(files []string, tail int64) ([]piece, error) {
	var pieces []piece
	for _, file := range slices.Backward(files) {
		lines, err := countLines(file)
		if err != nil {
			return nil, err
		}
		if lines >= tail || file == files[0] {
			left := tail
			return append([]piece{{path: file, tail: &left}}, pieces...), nil
		}
		pieces = append([]piece{{path: file}}, pieces...)
		tail -= lines
	}
	return pieces, nil
}

// open reads a piece, also when it was compressed.
func (p *piece) open() (io.ReadCloser, error) {
	f, err := os.Open(p.path)
	if err != nil || !strings.HasSuffix(p.path, ".gz") {
		return f, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", p.path, err), f.Close())
	}
	return &unzipped{Reader: z, file: f}, nil
}

type unzipped struct {
	*gzip.Reader
	file *os.File
}

// Close closes both the stream and the file.
func (u *unzipped) Close() error { return errors.Join(u.Reader.Close(), u.file.Close()) }

func countLines(path string) (int64, error) {
	p := &piece{path: path}
	r, err := p.open()
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	buffer, lines := make([]byte, 64<<10), int64(0)
	for {
		n, err := r.Read(buffer)
		lines += int64(bytes.Count(buffer[:n], []byte{'\n'}))
		switch {
		case errors.Is(err, io.EOF):
			return lines, r.Close()
		case err != nil:
			return 0, errors.Join(fmt.Errorf("reading %s: %w", path, err), r.Close())
		}
	}
}

// read hands a piece to a reader of files. A compressed one is unpacked beside the
// system's other temporary files for that long, since the reader works from the end.
func (p *piece) read(show func(path string, tail *int64) error) (err error) {
	if err = check(p.path, wholeLog); err != nil {
		// Rotated away meanwhile, or not written yet.
		return missing(err)
	}
	if !strings.HasSuffix(p.path, ".gz") {
		return show(p.path, p.tail)
	}
	r, err := p.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	unpacked, err := os.CreateTemp("", "podctl-log-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unpacked.Close(), os.Remove(unpacked.Name())) }()
	if err = unpack(unpacked, r, unpackedMax); err == nil {
		err = check(unpacked.Name(), wholeLog)
	}
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", p.path, err)
	}
	return show(unpacked.Name(), p.tail)
}

// A log is bounded where its reader is not: the length of a line, which a runtime cuts at
// 16 KiB, and what a compressed file may become. Both are in bytes.
const (
	wholeLog    = math.MaxInt64
	logLineMax  = 1 << 20
	unpackedMax = 1 << 30
)

func unpack(w io.Writer, r io.Reader, limit int64) error {
	n, err := io.Copy(w, io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		return fmt.Errorf("it becomes larger than %d bytes: remove it", limit)
	}
	return err
}

// check proves that a file can be read line by line: that it is a regular one, and,
// unless it is compressed, that no line is longer than a runtime writes. A crash of the
// machine can leave gigabytes of nothing in one. Of a file of which only the end is read
// so many bytes are looked at.
func check(path string, last int64) (err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("reading %s: it is not a regular file", path))
	}
	if strings.HasSuffix(path, ".gz") {
		return nil
	}
	if _, err = f.Seek(max(info.Size()-last, 0), io.SeekStart); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	buffer, length, line := make([]byte, 64<<10), 0, 1
	for {
		n, err := f.Read(buffer)
		read := buffer[:n]
		if last := bytes.LastIndexByte(read, '\n'); last >= 0 {
			length, line = n-last-1, line+bytes.Count(read, []byte{'\n'})
		} else {
			length += n
		}
		switch {
		case length > logLineMax:
			return fmt.Errorf("reading %s: line %d is longer than the %d bytes that a runtime writes: the file is damaged", path, line, logLineMax)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
}
