package nofollow

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotRegular says that a file is a directory, a pipe, a device or a socket, which is not
// opened: opening alone may wait, or make a device do something.
var ErrNotRegular = errors.New("it is not a regular file")

// ErrLink says that a link lies where none is followed.
var ErrLink = errors.New("it is a link, which podctl does not follow here: remove it")

// Handle opens what a name in a directory stands for, also a link, as it is: nothing can be
// read through the handle, and nothing happens to a pipe or a device. The caller closes it.
func Handle(dir *os.File, name string) (*os.File, fs.FileInfo, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	handle := os.NewFile(uintptr(fd), "handle")
	info, err := handle.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, handle.Close())
	}
	return handle, info, nil
}

// Reopen opens what a handle stands for, a regular file or a directory. The name is for
// errors. The caller closes both.
func Reopen(handle *os.File, flags int, name string) (*os.File, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", handle.Fd()), flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		// The file itself cannot be missing: it is open. That error means another thing.
		return nil, errors.New("the proc file system is needed to open files safely: mount it at /proc")
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Regular opens a regular file in a directory for reading. The error is ErrLink or
// ErrNotRegular for what is none. The caller closes it.
func Regular(dir *os.File, name string) (*os.File, fs.FileInfo, error) {
	handle, info, err := Handle(dir, name)
	if err != nil {
		return nil, nil, err
	}
	defer handle.Close() //nolint:errcheck // nothing was written through it
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, nil, ErrLink
	case !info.Mode().IsRegular():
		return nil, nil, ErrNotRegular
	}
	f, err := Reopen(handle, unix.O_RDONLY, name)
	return f, info, err
}
