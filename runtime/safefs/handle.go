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

// HandleIn opens a path with O_PATH under the name that it has for a process with another root directory: no link leads
// out of that directory. Kernels before 5.6 cannot do that.
func HandleIn(root, path string) (*os.File, error) { return handleOf(root, path, unix.RESOLVE_IN_ROOT) }

// HandleBeneath opens a relative path in a directory with O_PATH. It refuses a link that leads out of that directory.
// Kernels before 5.6 cannot do that.
func HandleBeneath(dir, path string) (*os.File, error) {
	f, err := handleOf(dir, path, unix.RESOLVE_BENEATH)
	if errors.Is(err, unix.EXDEV) {
		return nil, errors.New("it is a link that leads out of the directory")
	}
	return f, err
}

func handleOf(dir, path string, resolve uint64) (*os.File, error) {
	base, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	defer unix.Close(base) //nolint:errcheck // it was only a path
	fd, err := unix.Openat2(base, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, os.NewSyscallError("openat2", err)
	}
	return os.NewFile(uintptr(fd), path), nil
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
