package input

import (
	"context"
	"fmt"
	"io"
	"os"
)

// TooLargeError says that an input has more bytes than are read.
type TooLargeError struct{ Max int64 }

// Error says the limit.
func (e *TooLargeError) Error() string { return fmt.Sprintf("it is larger than %d bytes", e.Max) }

// ReadAtMost reads an input to its end. One with more bytes than the limit is a
// *TooLargeError, and is not read any further.
func ReadAtMost(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, &TooLargeError{Max: limit}
	}
	return text, err
}

// ReadFileAtMost is ReadAtMost for a file.
func ReadFileAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // a file that was only read
	return ReadAtMost(f, limit)
}

// ReadUntil gives up when the context ends, with its cause. Nothing breaks off the opening of
// a pipe that nobody writes to, or the reading of one, so they go on beside the process's end.
func ReadUntil(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type outcome struct {
		text []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		text, err := read()
		done <- outcome{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case got := <-done:
		return got.text, got.err
	}
}

// DefaultMaxBytes bounds the size of one source, as the kubelet bounds a static
// pod's file.
const DefaultMaxBytes = 10 << 20
