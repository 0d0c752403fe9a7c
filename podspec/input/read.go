package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// TooLargeError reports an input above the size limit in bytes.
type TooLargeError struct{ Max int64 }

// Error includes the limit.
func (e *TooLargeError) Error() string { return fmt.Sprintf("it is larger than %d bytes", e.Max) }

// DefaultMaxBytes limits the size of one source. It is the kubelet's limit for a static pod's file.
const DefaultMaxBytes = 10 << 20

// fileTimeout limits the time for reading one file, whose file system may no longer respond.
const fileTimeout = 10 * time.Second

// ReadAtMost reads an input to its end. Above the limit it stops and returns a *TooLargeError.
func ReadAtMost(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, &TooLargeError{Max: limit}
	}
	return text, err
}

// ReadNamed reads a file that a user named in a command or a flag. It reads a file within ten seconds, and a pipe until
// the context ends.
func ReadNamed(ctx context.Context, path string, limit int64) ([]byte, error) {
	return readNamed(ctx, path, limit, fileTimeout)
}

func readNamed(ctx context.Context, path string, limit int64, timeout time.Duration) ([]byte, error) {
	info, err := within(ctx, timeout, func() (os.FileInfo, error) { return os.Stat(path) })
	if err != nil || info.Mode().IsRegular() {
		return readFile(ctx, path, limit, timeout)
	}
	return Until(ctx, func() ([]byte, error) {
		return readOpened(limit, func() (*os.File, error) { return OpenNamed(ctx, path) })
	})
}

// readFile reads a regular file within a timeout. Zero means ten seconds.
func readFile(ctx context.Context, path string, limit int64, timeout time.Duration) ([]byte, error) {
	return within(ctx, timeout, func() ([]byte, error) { return readRegular(path, limit) })
}

func readRegular(path string, limit int64) ([]byte, error) {
	return readOpened(limit, func() (*os.File, error) { return Open(path) })
}

func readOpened(limit int64, open func() (*os.File, error)) ([]byte, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return ReadAtMost(f, limit)
}

// within stops waiting for do after a timeout. Zero means ten seconds.
func within[T any](ctx context.Context, limit time.Duration, do func() (T, error)) (T, error) {
	limit = cmp.Or(limit, fileTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	return Until(ctx, do)
}

// errSilent reports a missed deadline.
var errSilent = errors.New("its file system does not answer")

// Until calls do, which may never return. When the context ends it returns the context's cause; do continues until the
// process ends.
func Until[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	case got := <-done:
		return got.value, got.err
	}
}
