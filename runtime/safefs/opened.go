package safefs

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// opened is a directory itself, independent of its path.
type opened struct {
	// file was opened with O_PATH, which needs no read permission.
	file *os.File
}

// Close frees the directory.
func (d opened) Close() error { return d.file.Close() }

// Path returns the path with which the directory was opened. It may lead elsewhere by now.
func (d opened) Path() string { return d.file.Name() }

// Stat describes the directory itself.
func (d opened) Stat() (fs.FileInfo, error) { return d.file.Stat() }

// Join returns the path of a name in the directory, for messages.
func (d opened) Join(name string) string { return filepath.Join(d.Path(), name) }

func (d opened) fd() int { return int(d.file.Fd()) }

// File returns another handle on the directory.
func (d opened) File() (*os.File, error) { return duplicate(d.file, d.Path()) }

func duplicate(file *os.File, path string) (*os.File, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "dup", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// DirOf opens the directory of a root. path is used in messages.
func DirOf(root *os.Root, path string) (*Dir, error) {
	file, err := root.Open(".")
	if err != nil {
		return nil, named(path, err)
	}
	defer file.Close() //nolint:errcheck // A handle on a directory.
	own, err := duplicate(file, path)
	if err != nil {
		return nil, err
	}
	return &Dir{opened{own}}, nil
}

// Root opens the directory as an os.Root. Use it only for a directory that only podctl changes, because links within it
// are followed.
func (d opened) Root() (*os.Root, error) {
	root, err := os.OpenRoot(ProcPath(d.file))
	return root, named(d.Path(), err)
}

// Reader opens the directory for reading its names.
func (d opened) Reader() (*os.File, error) {
	fd, err := openat(d.fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.Path(), Err: err}
	}
	return os.NewFile(uintptr(fd), d.Path()), nil
}

// Entries returns the entries of the directory by name.
func (d opened) Entries() ([]fs.DirEntry, error) {
	file, err := d.Reader()
	if err != nil {
		return nil, err
	}
	entries, err := file.ReadDir(-1)
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, errors.Join(err, file.Close())
}

// Names returns the names in the directory in any order, and the error that ends them.
func (d opened) Names() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		file, err := d.Reader()
		if err != nil {
			yield("", err)
			return
		}
		defer file.Close() //nolint:errcheck // A handle on a directory.
		Names(file)(yield)
	}
}

// NamesAtOnce is how many names of a directory Names holds in memory. A container can create millions.
const NamesAtOnce = 256

// Names returns the names in an open directory in any order, and the error that ends them.
func Names(dir *os.File) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for {
			names, err := dir.Readdirnames(NamesAtOnce)
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield("", err)
				}
				return
			}
		}
	}
}

// Sync makes the names in the directory durable.
func (d opened) Sync() error {
	file, err := d.Reader()
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// Chmod sets the mode of the directory.
func (d opened) Chmod(mode fs.FileMode) error { return chmod(d.file, mode) }

// Give sets the group of the directory and adds bits to its mode.
func (d opened) Give(group int, bits fs.FileMode) error {
	info, err := d.Stat()
	if err != nil {
		return err
	}
	return give(d.file, info.Mode(), group, bits)
}

// SetFileGroup sets the group of a file and adds bits to its mode. For a link it changes the link itself.
func (d *Dir) SetFileGroup(name string, group int, bits fs.FileMode) error {
	handle, info, err := d.Handle(name)
	if err != nil {
		return err
	}
	return errors.Join(give(handle, info.Mode(), group, bits), handle.Close())
}

// give changes the opened file, independent of its name.
func give(file *os.File, mode fs.FileMode, group int, bits fs.FileMode) error {
	if err := unix.Fchownat(int(file.Fd()), "", -1, group, unix.AT_EMPTY_PATH); err != nil {
		return &fs.PathError{Op: "chown", Path: file.Name(), Err: err}
	}
	if mode&fs.ModeSymlink != 0 {
		return nil
	}
	return chmod(file, mode|bits)
}

// chmod changes the file of a handle through the path of its descriptor, which leads only to that file.
func chmod(file *os.File, mode fs.FileMode) error {
	if err := os.Chmod(ProcPath(file), mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: file.Name(), Err: Cause(err)}
	}
	return nil
}
