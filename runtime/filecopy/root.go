package filecopy

import (
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// Root is a directory that acts as the root of a file system: no path leads out of it, and its absolute links start at
// it.
type Root struct{ dir *os.File }

// OpenRoot opens a root by its name in a directory. The caller closes it, and may close the directory before.
func OpenRoot(dir *os.File, name string) (*Root, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path.Join(dir.Name(), name), Err: err}
	}
	return &Root{dir: os.NewFile(uintptr(fd), name)}, nil
}

// Close closes the root.
func (r *Root) Close() error { return r.dir.Close() }

// Open opens a file or directory for reading. It refuses other files, because opening a device may have side effects.
func (r *Root) Open(name string) (*os.File, error) {
	handle, err := r.open(name, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	defer handle.Close() //nolint:errcheck // nothing was written through it
	info, err := handle.Stat()
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = errors.New("it is neither a file nor a directory")
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: plain(name), Err: err}
	}
	return safefs.Reopen(handle, unix.O_RDONLY, plain(path.Base(name)))
}

// OpenDir opens a directory to write into.
func (r *Root) OpenDir(name string) (*os.File, error) {
	return r.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
}

func (r *Root) open(name string, flags int) (*os.File, error) {
	f, err := safefs.OpenIn(r.dir, name, flags)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: plain(name), Err: err}
	}
	return f, nil
}

// Target returns the directory and the name for writing a file named base. If name is a directory, that is base in it,
// or else name in its parent. The caller closes the directory.
func (r *Root) Target(name, base string) (*os.File, string, error) {
	return targetIn(name, base, r.OpenDir)
}

// Target is like Root.Target for a path of the process.
func Target(name, base string) (*os.File, string, error) {
	return targetIn(name, base, func(name string) (*os.File, error) {
		return os.OpenFile(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	})
}

func targetIn(name, base string, open func(string) (*os.File, error)) (*os.File, string, error) {
	dir, err := open(name)
	if err == nil {
		return dir, base, nil
	}
	if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
		return nil, "", err
	}
	if name[len(name)-1] == '/' {
		return nil, "", err
	}
	dir, err = open(path.Dir(name))
	return dir, path.Base(name), err
}
