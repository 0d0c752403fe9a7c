package safefs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrName says that a name is not a single element of a path.
var ErrName = errors.New("it is not a plain file name")

// CheckName refuses a name that is not a single element of a path: it is empty, "." or "..",
// or has a slash or a null character in it. The error is ErrName.
func CheckName(name string) error {
	if !filepath.IsLocal(name) || name == "." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("the name %q: %w", name, ErrName)
	}
	return nil
}

// Dir is an open directory, with methods for the names in it and those of the directory itself.
// Close frees it.
type Dir struct{ opened }

func newDir(fd int, path string) *Dir { return &Dir{opened{os.NewFile(uintptr(fd), path)}} }

// Follow opens a directory by its path and follows all links, as open(2) does. It is for
// paths that the owner of the machine has chosen, and for reading.
func Follow(path string) (*Dir, error) {
	file, err := os.OpenFile(path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &Dir{opened{file}}, nil
}

// do makes a system call about one name in the directory.
func (d *Dir) do(op, name string, call func(fd int) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = call(d.fd())
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: d.Join(name), Err: err}
	}
	return nil
}

// open opens a name with flags to which those that make it safe are added.
func (d *Dir) open(name string, flags int, perm fs.FileMode) (*os.File, error) {
	var fd int
	err := d.do("open", name, func(dir int) (err error) {
		fd, err = openat(dir, name, flags, perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), d.Join(name)), nil
}

// Handle opens and describes whatever a name stands for without reading it, a link itself included: it
// serves to look at it and to mount it.
func (d *Dir) Handle(name string) (*os.File, fs.FileInfo, error) {
	handle, err := d.open(name, unix.O_PATH, 0)
	if err != nil {
		return nil, nil, err
	}
	return described(handle)
}

func described(handle *os.File) (*os.File, fs.FileInfo, error) {
	info, err := handle.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, handle.Close())
	}
	return handle, info, nil
}

// Lstat describes what a name stands for.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	handle, info, err := d.Handle(name)
	if err != nil {
		return nil, err
	}
	return info, handle.Close()
}

// OpenFile opens a file, or makes it if the flags say so. It does not wait for the other
// end of a pipe.
func (d *Dir) OpenFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	return d.open(name, flags|unix.O_NONBLOCK|unix.O_NOCTTY, perm)
}

// OpenRegular opens a regular file for reading. All else is not opened: a link is ErrLink, and
// what is neither is ErrNotRegular. It is looked at first, and what was looked at is opened.
func (d *Dir) OpenRegular(name string) (*os.File, fs.FileInfo, error) {
	handle, info, err := d.Handle(name)
	if err != nil {
		return nil, nil, err
	}
	defer handle.Close() //nolint:errcheck // A handle.
	var f *os.File
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		err = ErrLink
	case !info.Mode().IsRegular():
		err = ErrNotRegular
	default:
		f, err = Reopen(handle, unix.O_RDONLY, d.Join(name))
	}
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: d.Join(name), Err: err}
	}
	return f, info, nil
}

// Create makes a file that is not there yet, with exactly this mode, and opens it for
// writing.
func (d *Dir) Create(name string, perm fs.FileMode) (*os.File, error) {
	file, err := d.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	// This is the file that was made, as O_EXCL says.
	if err := file.Chmod(perm); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Touch makes an empty file with exactly this mode, unless something has that name.
func (d *Dir) Touch(name string, perm fs.FileMode) error {
	file, err := d.Create(name, perm)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// Readlink is where a symbolic link leads.
func (d *Dir) Readlink(name string) (target string, err error) {
	err = d.do("readlink", name, func(fd int) (err error) {
		target, err = readlinkat(fd, name)
		return err
	})
	return target, err
}

// Symlink makes a symbolic link under a name that is free.
func (d *Dir) Symlink(target, name string) error {
	return d.do("symlink", name, func(fd int) error { return unix.Symlinkat(target, fd, name) })
}

// Replace gives a file in the directory another name, in the place of a file that has it.
func (d *Dir) Replace(name, as string) error {
	if err := CheckName(as); err != nil {
		return err
	}
	return d.do("rename", name, func(fd int) error { return unix.Renameat(fd, name, fd, as) })
}

// Rename moves a name to a directory of the same file system under a name that is free.
// Of a link the link itself is moved.
func (d *Dir) Rename(name string, to *Dir, as string) error {
	if err := CheckName(as); err != nil {
		return err
	}
	err := d.do("rename", name, func(fd int) error {
		return unix.Renameat2(fd, name, to.fd(), as, unix.RENAME_NOREPLACE)
	})
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	// The file system does not know that flag.
	if _, err := to.Lstat(as); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, error(&fs.PathError{Op: "rename", Path: to.Join(as), Err: unix.EEXIST}))
	}
	return d.do("rename", name, func(fd int) error { return unix.Renameat(fd, name, to.fd(), as) })
}

// Missing reports whether an error says that nothing of ours has a name: nothing has it, it
// is longer than a name can be, or what has it, or stands on the way to it, is no directory
// where one was to be opened.
func Missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// IgnoreMissing leaves out the error that says that something does not exist.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// NotExist reports whether an error says that a path that was asked for is not there. A parent
// that is no directory counts: accounts of services have files as homes.
func NotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}
