package filecopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// unsizedMax limits the bytes read from a file that reports size zero. Files of /proc do so, and some never end.
const unsizedMax = 64 << 20

// content copies as many bytes of a file as it had when it was opened, and keeps its holes.
func (c *copier) content(src, out *os.File, size int64) error {
	if size == 0 {
		return c.unsized(src, out)
	}
	end := int64(0)
	for end < size {
		data, hole, err := nextData(src, end, size)
		if err != nil {
			return err
		}
		if data == size {
			end, err = shorter(src, end, size)
			return errors.Join(err, out.Truncate(end))
		}
		copied, err := c.span(src, out, data, hole-data)
		if err != nil {
			return err
		}
		if end = data + copied; end < hole {
			break // The file became shorter, or never had the size it reported.
		}
	}
	return out.Truncate(end)
}

func (c *copier) unsized(src, out *os.File) error {
	n, err := c.span(src, out, 0, unsizedMax+1)
	if err == nil && n > unsizedMax {
		return errUnsized()
	}
	return err
}

func errUnsized() error {
	return fmt.Errorf("its size is reported as 0, but it has more than %d bytes", unsizedMax)
}

// span copies bytes from an offset on and returns their number.
func (c *copier) span(src, out *os.File, from, length int64) (int64, error) {
	// A file without seek is read from its current position, which is its beginning.
	_, err := src.Seek(from, io.SeekStart)
	if err != nil && from > 0 {
		return 0, err
	}
	if _, err = out.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(out, &countingReader{c: c, r: io.LimitReader(src, length)})
}

// nextData finds the next range of a file that is not a hole. Both ends are size if there is none. A file system
// without support reports everything as data.
func nextData(f *os.File, from, size int64) (data, hole int64, err error) {
	fd := int(f.Fd())
	data, err = unix.Seek(fd, from, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size, nil
	case err != nil:
		return from, size, nil //nolint:nilerr // it cannot say where its holes are
	}
	hole, err = unix.Seek(fd, data, unix.SEEK_HOLE)
	if errors.Is(err, unix.ENXIO) {
		// The file was truncated at this moment.
		return size, size, nil
	}
	if data < from || hole <= data {
		return from, size, err // Do not trust a file system with such offsets.
	}
	return min(data, size), min(hole, size), err
}

// shorter returns the end of a file whose last bytes are a hole or were truncated meanwhile.
func shorter(f *os.File, from, size int64) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return max(min(info.Size(), size), from), nil
}

// countingReader counts the bytes read, and ends with the context.
type countingReader struct {
	c *copier
	r io.Reader
}

// Read reads and counts.
func (r *countingReader) Read(p []byte) (int, error) {
	if r.c.ctx.Err() != nil {
		return 0, context.Cause(r.c.ctx)
	}
	n, err := r.r.Read(p)
	r.c.bytes += int64(n)
	r.c.reportProgress()
	return n, err
}
