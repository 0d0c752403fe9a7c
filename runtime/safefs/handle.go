package safefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotRegular reports a directory, a pipe, a device or a socket where a regular file is expected. Merely opening it
// may block or have side effects.
var ErrNotRegular = errors.New("it is not a regular file")

// ErrLink reports a link where links are not followed.
var ErrLink = errors.New("it is a link, which podctl does not follow here: remove it")

// openat opens or creates a name in a directory without following a link.
func openat(dir int, name string, flags int, perm fs.FileMode) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// Handle opens a name in an open directory with O_PATH, also a link itself. This has no effect on a pipe or a device.
// Errors do not include the name.
func Handle(dir *os.File, name string) (*os.File, fs.FileInfo, error) {
	fd, err := openat(int(dir.Fd()), name, unix.O_PATH, 0)
	if err != nil {
		return nil, nil, err
	}
	return described(os.NewFile(uintptr(fd), "handle"))
}

// HandleIn opens a path with O_PATH under the name that it has for a process with another root directory (see OpenIn).
// It needs Linux 5.6.
func HandleIn(root, path string) (*os.File, error) {
	return handleBelow(root, path, unix.RESOLVE_IN_ROOT)
}

// HandleBeneath opens a relative path in a directory with O_PATH. It refuses a link that leads out of that directory.
// It needs Linux 5.6.
func HandleBeneath(dir, path string) (*os.File, error) {
	f, err := handleBelow(dir, path, unix.RESOLVE_BENEATH)
	if errors.Is(err, unix.EXDEV) {
		return nil, errors.New("it is a link that leads out of the directory")
	}
	return f, err
}

func handleBelow(dir, path string, resolve uint64) (*os.File, error) {
	base, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer base.Close() //nolint:errcheck // A handle.
	return openBelow(base, path, unix.O_PATH, resolve)
}

// OpenIn opens a path with a directory as the root: absolute links start at it, and no link leads out of it. It needs
// Linux 5.6.
func OpenIn(root *os.File, path string, flags int) (*os.File, error) {
	return openBelow(root, path, flags, unix.RESOLVE_IN_ROOT)
}

func openBelow(dir *os.File, path string, flags int, resolve uint64) (*os.File, error) {
	fd, err := unix.Openat2(int(dir.Fd()), path, &unix.OpenHow{
		Flags:   uint64(flags) | unix.O_CLOEXEC, //nolint:gosec // Flags are positive.
		Resolve: resolve | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case errors.Is(err, unix.ENOSYS):
		return nil, fmt.Errorf("opening files safely needs Linux 5.6: %w", err)
	case err != nil:
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ReopenRegular opens the regular file of a handle for reading. A link is ErrLink, and any other file is ErrNotRegular.
// name is used in errors. The caller closes both.
func ReopenRegular(handle *os.File, name string) (*os.File, error) {
	info, err := handle.Stat()
	if err != nil {
		return nil, err
	}
	return reopenRegular(handle, info, name)
}

func reopenRegular(handle *os.File, info fs.FileInfo, name string) (*os.File, error) {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, ErrLink
	case !info.Mode().IsRegular():
		return nil, ErrNotRegular
	}
	return Reopen(handle, unix.O_RDONLY, name)
}

// Reopen opens the regular file or directory of a handle. name is used in errors. The caller closes both.
func Reopen(handle *os.File, flags int, name string) (*os.File, error) {
	return reopen(int(handle.Fd()), flags|unix.O_NONBLOCK|unix.O_NOCTTY, name)
}

func reopen(handle, flags int, name string) (*os.File, error) {
	fd, err := unix.Open(procPath(handle), flags|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		// The open file itself cannot be missing, so /proc is not mounted.
		return nil, errors.New("the proc file system is needed to open files safely: mount it at /proc")
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// ProcPath returns a path with which this process reaches the open file, independent of its names.
func ProcPath(file *os.File) string { return procPath(int(file.Fd())) }

func procPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// LinkTarget returns the target of a symbolic link with this handle.
func LinkTarget(handle *os.File) (string, error) { return readlinkat(int(handle.Fd()), "") }

func readlinkat(dir int, name string) (string, error) {
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, text)
	return string(text[:max(n, 0)]), err
}

// Cause returns an error without its path, for callers that name the file themselves.
func Cause(err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Wrapf returns an error with a text before it, or nil for nil. The text is formatted as by fmt.Sprintf.
func Wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
