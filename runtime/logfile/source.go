package logfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
)

// Limits in bytes, because the writer of a log may have none. They limit the length of a line, which a runtime splits
// at 16 KiB, and the decompressed size of a file.
const (
	logLineMax  = 1 << 20
	unpackedMax = 1 << 30
)

// blockSize is the number of bytes read at once.
const blockSize = 64 << 10

// source is an open file of a log, which is read line by line.
type source struct {
	path string
	file *os.File
	info fs.FileInfo
	zip  bool
	in   *bufio.Reader
	// part is the beginning of a line without an end so far.
	part []byte
	// number counts the lines that were read. It is unknown if only the last lines are shown.
	number int64
	// left is how many lines may still be shown; a negative number means all.
	left  int64
	parse parser
}

func (s *source) close() error { return s.file.Close() }

// closed closes the file and joins its error with err.
func (s *source) closed(err error) error { return errors.Join(err, s.file.Close()) }

// wrap adds the name of the file to an error.
func (s *source) wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case s.zip:
		return fmt.Errorf("unpacking %s: %w", s.path, err)
	}
	return fmt.Errorf("reading %s: %w", s.path, err)
}

// begin starts at the first line, or at one of the last lines, and stops at the current end of the file.
func (s *source) begin(tail *int64) error {
	if s.zip {
		return s.wrap(s.beginZip(tail))
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if err = s.beginFollowing(tail); err != nil {
		return err
	}
	at, err := s.file.Seek(0, io.SeekCurrent)
	if tail != nil {
		s.left = *tail
	}
	s.in.Reset(io.LimitReader(s.file, info.Size()-at))
	return s.wrap(err)
}

// beginFollowing is begin without an end.
func (s *source) beginFollowing(tail *int64) error {
	start := int64(0)
	if tail != nil {
		var err error
		if start, _, err = s.lastLines(*tail, math.MaxInt64); err != nil {
			return s.wrap(err)
		}
		s.number = math.MinInt64
	}
	_, err := s.file.Seek(start, io.SeekStart)
	s.in = bufio.NewReaderSize(s.file, blockSize)
	return s.wrap(err)
}

// beginWithin starts at the last lines within the given number of bytes at the end.
func (s *source) beginWithin(lines, span int64) error {
	start, _, err := s.lastLines(lines, span)
	if err != nil {
		return s.wrap(err)
	}
	s.number, s.left = math.MinInt64, lines
	_, err = s.file.Seek(start, io.SeekStart)
	s.in = bufio.NewReaderSize(io.LimitReader(s.file, span), blockSize)
	return s.wrap(err)
}

func (s *source) beginZip(tail *int64) error {
	skip := int64(0)
	if tail != nil {
		lines, err := s.count(math.MaxInt64)
		if err != nil {
			return err
		}
		s.left, skip = *tail, lines-*tail
	}
	if err := s.unzip(); err != nil {
		return err
	}
	for ; skip > 0; skip-- {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

// unzip reads a compressed file from its beginning.
func (s *source) unzip() error {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := gzip.NewReader(s.file)
	if err != nil {
		return err
	}
	s.in = bufio.NewReaderSize(&bounded{r: z, left: unpackedMax}, blockSize)
	return nil
}

// bounded returns an error if the data become too large.
type bounded struct {
	r    io.Reader
	left int64
}

// Read reads at most the remaining bytes.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("it becomes larger than %d bytes: remove it", unpackedMax)
	}
	return n, err
}

// count counts complete lines. In a file that is not compressed, it counts from the end up to the limit.
func (s *source) count(limit int64) (int64, error) {
	if !s.zip {
		_, lines, err := s.lastLines(limit, math.MaxInt64)
		return lines, s.wrap(err)
	}
	if err := s.unzip(); err != nil {
		return 0, s.wrap(err)
	}
	lines := int64(0)
	for {
		block, err := s.in.ReadSlice('\n')
		lines += int64(bytes.Count(block, []byte{'\n'}))
		switch {
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return 0, s.wrap(err)
		}
	}
}

// lastLines returns the start of the last lines within the given number of bytes at the end, and their number. An
// incomplete line does not count.
func (s *source) lastLines(count, span int64) (start, found int64, err error) {
	info, err := s.file.Stat()
	if err != nil {
		return 0, 0, err
	}
	floor := max(info.Size()-span, 0)
	block := make([]byte, blockSize)
	// start is the offset after the newline found last, searching from the end.
	start = info.Size()
	for right := start; right > floor; {
		left := max(right-blockSize, floor)
		n, err := s.file.ReadAt(block[:right-left], left)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		for i := n; ; found++ {
			if i = bytes.LastIndexByte(block[:i], '\n'); i < 0 {
				break
			}
			if start = left + int64(i) + 1; found == count {
				return start, found, nil
			}
		}
		if right = left; start-right > logLineMax+1 {
			return 0, 0, tooLong("a line")
		}
	}
	if floor == 0 {
		start = 0
	}
	return start, found, nil
}

// next returns the next line with its end. At the end of the file it returns io.EOF and keeps an incomplete line for
// the next call.
func (s *source) next() ([]byte, error) {
	for {
		line, err := s.in.ReadSlice('\n')
		if err == nil {
			s.number++
		}
		if err == nil && len(s.part) == 0 {
			return line, nil
		}
		s.part = append(s.part, line...)
		switch {
		case len(s.part) > logLineMax+1:
			return nil, s.tooLong()
		case err == nil:
			line, s.part = s.part, s.part[:0]
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (s *source) tooLong() error {
	if s.number < 0 {
		return tooLong("a line")
	}
	return tooLong(fmt.Sprintf("line %d", s.number+1))
}

func tooLong(line string) error {
	return fmt.Errorf("%s is longer than the %d bytes that a runtime writes: the file is damaged", line, logLineMax)
}

// copy shows all complete lines.
func (s *source) copy(ctx context.Context, out *output) error {
	for s.left != 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.wrap(err)
		}
		if err = s.put(out, line); err != nil {
			return err
		}
	}
	return nil
}

// copyRest shows an incomplete line.
func (s *source) copyRest(out *output) error {
	if s.left == 0 || len(s.part) == 0 {
		return nil
	}
	line := s.part
	s.part = nil
	return s.put(out, line)
}

// put shows one line. The first line determines the format of the file. Lines in another format are omitted.
func (s *source) put(out *output, line []byte) error {
	if s.parse == nil {
		if s.parse = formatOf(line); s.parse == nil {
			return s.wrap(errors.New("it does not have the format of a container's log"))
		}
	}
	var e entry
	if !s.parse(line, &e) {
		return nil
	}
	s.left--
	return out.put(&e)
}
