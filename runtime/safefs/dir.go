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

// ErrName reports a name that is not a single element of a path.
var ErrName = errors.New("it is not a plain file name")

// CheckName refuses a name that is not a single element of a path: it is empty, "." or "..", or contains a slash or a
// null character. The error is ErrName.
func CheckName(name string) error {
	if !filepath.IsLocal(name) || name == "." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("the name %q: %w", name, ErrName)
	}
	return nil
}

// Dir is an open directory, with methods for its names and for the directory itself. Call Close to free it.
type Dir struct{ opened }

func newDir(fd int, path string) *Dir { return &Dir{opened{os.NewFile(uintptr(fd), path)}} }

// Follow opens a directory by its path and follows all links, like open(2). Use it only for reading, and for paths that
// the owner of the machine has chosen.
func Follow(path string) (*Dir, error) {
	file, err := os.OpenFile(path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &Dir{opened{file}}, nil
}

// do makes a system call for one name in the directory.
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

// open opens a name without following links.
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

// Handle opens and describes any file with O_PATH, including a link itself. The handle serves to inspect or mount the
// file, not to read it.
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

// Lstat describes the file with a name.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	handle, info, err := d.Handle(name)
	if err != nil {
		return nil, err
	}
	return info, handle.Close()
}

// OpenFile opens a file, or creates it if the flags say so. It does not wait for the other end of a pipe.
func (d *Dir) OpenFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	return d.open(name, flags|unix.O_NONBLOCK|unix.O_NOCTTY, perm)
}

// OpenRegular opens a regular file for reading. A link is ErrLink, and any other file is ErrNotRegular. It checks the
// type first, and opens the file that was checked.
func (d *Dir) OpenRegular(name string) (*os.File, fs.FileInfo, error) {
	handle, info, err := d.Handle(name)
	if err != nil {
		return nil, nil, err
	}
	defer handle.Close() //nolint:errcheck // A handle.
	f, err := reopenRegular(handle, info, d.Join(name))
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: d.Join(name), Err: err}
	}
	return f, info, nil
}

// Create creates a new file with exactly this mode and opens it for writing.
func (d *Dir) Create(name string, perm fs.FileMode) (*os.File, error) {
	file, err := d.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	// O_EXCL guarantees that this is the new file.
	if err := file.Chmod(perm); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Touch creates an empty file with exactly this mode, unless the name exists.
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

// Readlink returns the target of a symbolic link.
func (d *Dir) Readlink(name string) (target string, err error) {
	err = d.do("readlink", name, func(fd int) (err error) {
		target, err = readlinkat(fd, name)
		return err
	})
	return target, err
}

// Symlink creates a symbolic link under an unused name.
func (d *Dir) Symlink(target, name string) error {
	return d.do("symlink", name, func(fd int) error { return unix.Symlinkat(target, fd, name) })
}

// Replace renames a file in the directory and replaces a file with the new name.
func (d *Dir) Replace(name, as string) error {
	if err := CheckName(as); err != nil {
		return err
	}
	return d.do("rename", name, func(fd int) error { return unix.Renameat(fd, name, fd, as) })
}

// Rename moves a name to a directory of the same file system under an unused name. It moves a link itself.
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
	// The file system does not support the flag.
	if _, err := to.Lstat(as); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, error(&fs.PathError{Op: "rename", Path: to.Join(as), Err: unix.EEXIST}))
	}
	return d.do("rename", name, func(fd int) error { return unix.Renameat(fd, name, to.fd(), as) })
}

// Missing reports whether an error means that the file does not exist or cannot be one of podctl's. The name does not
// exist or is too long, or a directory was expected.
func Missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// IgnoreMissing returns nil for an error about a missing file.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// NotExist reports whether an error means that a requested path does not exist. A parent that is not a directory
// counts, because service accounts may have a file as their home.
func NotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}
