package filecopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// unsizedMax is how much is read of a file that says it is empty, in bytes: those of the proc
// file system say so, and some never end.
const unsizedMax = 64 << 20

// content copies so much of a file as it had when it was opened, and leaves out its holes.
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
			break // It has become shorter, or never had what it said.
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
	return fmt.Errorf("it said that it is empty, and has more than %d bytes", unsizedMax)
}

// span copies the bytes from an offset on, and returns how many there were.
func (c *copier) span(src, out *os.File, from, length int64) (int64, error) {
	// A file that cannot be moved in is read from where it is, which is its begin.
	_, err := src.Seek(from, io.SeekStart)
	if err != nil && from > 0 {
		return 0, err
	}
	if _, err = out.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(out, &countingReader{c: c, r: io.LimitReader(src, length)})
}

// nextData finds the next bytes of a file that are no hole. Both ends are size when there are
// none. On a file system that does not know, all of it is data.
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
		// It was cut in this moment.
		return size, size, nil
	}
	if data < from || hole <= data {
		return from, size, err // A file system that says such things is not believed.
	}
	return min(data, size), min(hole, size), err
}

// shorter is where a file ends whose last bytes are a hole, or were cut off meanwhile.
func shorter(f *os.File, from, size int64) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return max(min(info.Size(), size), from), nil
}

// countingReader counts the bytes that are read, and ends with the context.
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
	r.c.tell()
	return n, err
}
