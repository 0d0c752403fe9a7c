package safefs

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

// openat opens or makes what a name in a directory stands for, and follows no link there.
func openat(dir int, name string, flags int, perm fs.FileMode) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// Handle opens what a name in an open directory stands for, also a link, as it is: nothing can
// be read through the handle, and nothing happens to a pipe or a device. Errors bear no name.
func Handle(dir *os.File, name string) (*os.File, fs.FileInfo, error) {
	fd, err := openat(int(dir.Fd()), name, unix.O_PATH, 0)
	if err != nil {
		return nil, nil, err
	}
	return described(os.NewFile(uintptr(fd), "handle"))
}

// Reopen opens what a handle stands for, a regular file or a directory. The name is for
// errors. The caller closes both.
func Reopen(handle *os.File, flags int, name string) (*os.File, error) {
	return reopen(int(handle.Fd()), flags|unix.O_NONBLOCK|unix.O_NOCTTY, name)
}

func reopen(handle, flags int, name string) (*os.File, error) {
	fd, err := unix.Open(procPath(handle), flags|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		// The file itself cannot be missing: it is open. That error means another thing.
		return nil, errors.New("the proc file system is needed to open files safely: mount it at /proc")
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// ProcPath leads this process to the very file that is open, whatever its names lead to by now.
func ProcPath(file *os.File) string { return procPath(int(file.Fd())) }

func procPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// LinkTarget is where a symbolic link leads of which this is a handle.
func LinkTarget(handle *os.File) (string, error) { return readlinkat(int(handle.Fd()), "") }

func readlinkat(dir int, name string) (string, error) {
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, text)
	return string(text[:max(n, 0)]), err
}

// Cause is an error without the path that it names, for a caller who names the file himself.
func Cause(err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}
