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

// A log is bounded where its writer is not: the length of a line, which a runtime cuts at
// 16 KiB, and what a compressed file may become. Both are in bytes.
const (
	logLineMax  = 1 << 20
	unpackedMax = 1 << 30
)

// blockSize is how much of a file is read at once, in bytes.
const blockSize = 64 << 10

// source is one open file of a log, which is read line by line.
type source struct {
	path string
	file *os.File
	info fs.FileInfo
	zip  bool
	in   *bufio.Reader
	// part is the begin of a line whose end has not come yet.
	part []byte
	// number is how many lines were read; it is not known when the last lines are shown.
	number int64
	// left is how many lines may still be shown; a negative number means all.
	left  int64
	parse parser
}

func (s *source) close() error { return s.file.Close() }

// closed closes the file, after an error too.
func (s *source) closed(err error) error { return errors.Join(err, s.file.Close()) }

// wrap says which file could not be read.
func (s *source) wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case s.zip:
		return fmt.Errorf("unpacking %s: %w", s.path, err)
	}
	return fmt.Errorf("reading %s: %w", s.path, err)
}

// begin begins with the first line, or with one of the last, and ends where the file ends now.
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

// beginFollowing begins in the same place, and has no end.
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

// beginWithin begins with the last lines that lie in so many bytes at the end.
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

// unzip reads a compressed file from its begin on.
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

// bounded ends what becomes too large with an error.
type bounded struct {
	r    io.Reader
	left int64
}

// Read reads no more than what is left.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("it becomes larger than %d bytes: remove it", unpackedMax)
	}
	return n, err
}

// count counts lines, those without an end left out; of a file that is not compressed it
// counts from the end and not beyond a number.
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

// lastLines finds where the last lines begin, as far as they lie in so many bytes at the end,
// and how many there are. A rest without an end of line is none.
func (s *source) lastLines(count, span int64) (start, found int64, err error) {
	info, err := s.file.Stat()
	if err != nil {
		return 0, 0, err
	}
	floor := max(info.Size()-span, 0)
	block := make([]byte, blockSize)
	// start is behind the newline that was found last, all being sought from the end.
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

// next is the next line with its end. At the end of the file it is io.EOF, and what is left
// without an end is kept for the next call.
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

// copy shows whole lines, to the end of what there is.
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

// copyRest shows what is left without an end of line.
func (s *source) copyRest(out *output) error {
	if s.left == 0 || len(s.part) == 0 {
		return nil
	}
	line := s.part
	s.part = nil
	return s.put(out, line)
}

// put shows one line. The first one says which format the file has; a line that has another
// one is left out.
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
