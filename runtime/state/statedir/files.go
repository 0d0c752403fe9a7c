package statedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// ErrDamaged reports a file that is truncated or that podctl did not write.
var ErrDamaged = errors.New("it is damaged")

const privateMode = 0o700

// relative returns a path relative to the state directory.
func (d Dir) relative(path string) (string, error) {
	below, err := filepath.Rel(d.Path, path)
	if err != nil || !filepath.IsLocal(below) {
		return "", fmt.Errorf("%s is not in the state directory %s", path, d.Path)
	}
	return below, nil
}

// In calls work with a file of the state directory, relative to the checked root. Use it only for files that no
// container can write. In follows links, because only root or the user of this process can create one there.
func (d Dir) In(path string, work func(root *os.Root, name string) error) error {
	below, err := d.relative(path)
	if err != nil {
		return err
	}
	root, err := d.root()
	if err != nil {
		return err
	}
	return named(path, work(root, below))
}

// named replaces the relative path in an error with the full path.
func named(path string, err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: strings.TrimSuffix(at.Op, "at"), Path: path, Err: at.Err}
	}
	if at := (*os.LinkError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: strings.TrimSuffix(at.Op, "at"), Path: path, Err: at.Err}
	}
	return err
}

// Open opens a directory of the state directory in which containers may write. It follows no links.
func (d Dir) Open(names ...string) (*safefs.Dir, error) {
	root, err := d.root()
	if err != nil {
		return nil, err
	}
	dir, err := safefs.DirOf(root, d.Path)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	return dir.Sub(names...)
}

// Make opens a directory like Open. It creates missing directories, the last one with perm and its parents with above.
func (d Dir) Make(above, perm fs.FileMode, names ...string) (*safefs.Dir, error) {
	if err := d.Prepare(); err != nil {
		return nil, err
	}
	dir, err := d.Open()
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	return dir.MakeSub(above, perm, names...)
}

// MkdirAll creates a directory with its parents. The mode does not depend on the umask.
func (d Dir) MkdirAll(path string, perm fs.FileMode) error {
	below, err := d.relative(path)
	if err != nil {
		return err
	}
	if below == "." {
		return d.Prepare()
	}
	made, err := d.Make(perm, perm, strings.Split(below, "/")...)
	if err != nil {
		return named(path, err)
	}
	return made.Close()
}

// Remove removes a file or an empty directory of the state directory. A missing one is not an error.
func (d Dir) Remove(path string) error { return safefs.IgnoreMissing(d.In(path, (*os.Root).Remove)) }

// RemoveIfEmpty removes a directory if it is empty.
func (d Dir) RemoveIfEmpty(path string) error {
	err := d.Remove(path)
	if errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// Entries returns the entries of a directory of the state directory, or none if it is missing.
func (d Dir) Entries(path string) (entries []fs.DirEntry, err error) {
	err = d.In(path, func(root *os.Root, name string) (err error) {
		entries, err = fs.ReadDir(root.FS(), name)
		return err
	})
	return entries, safefs.IgnoreMissing(err)
}

// Walk calls visit for a directory of the state directory and everything below. A missing directory is not an error.
// Walk does not follow links. names holds the path elements below the directory.
func (d Dir) Walk(path string, visit func(names []string, entry fs.DirEntry) error) error {
	err := d.In(path, func(root *os.Root, top string) error {
		return fs.WalkDir(root.FS(), top, func(at string, entry fs.DirEntry, err error) error {
			if safefs.NotExist(err) {
				return nil // It was removed meanwhile, which must not hide other files.
			}
			if err != nil {
				return err
			}
			below := strings.Trim(strings.TrimPrefix(at, top), "/")
			return visit(strings.FieldsFunc(below, func(r rune) bool { return r == '/' }), entry)
		})
	})
	return safefs.IgnoreMissing(err)
}

// Lstat returns the FileInfo of a file of the state directory.
func (d Dir) Lstat(path string) (info fs.FileInfo, err error) {
	err = d.In(path, func(root *os.Root, name string) (err error) {
		info, err = root.Lstat(name)
		return err
	})
	return info, err
}

// Exists reports whether a path of the state directory exists.
func (d Dir) Exists(path string) (bool, error) {
	_, err := d.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at the state directory: %w", err)
	}
	return true, nil
}

// Read reads a regular file of at most limit bytes. It refuses links, and pipes that never end.
func (d Dir) Read(
	path string, limit int64, checks ...func(path string, info fs.FileInfo) error,
) (text []byte, err error) {
	err = d.In(path, func(root *os.Root, name string) (err error) {
		f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			if info, lookErr := root.Lstat(name); lookErr == nil && info.Mode()&fs.ModeSymlink != 0 {
				err = fmt.Errorf("%w: it is a symbolic link", ErrDamaged)
			}
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		info, err := f.Stat()
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%w: it is not a regular file", ErrDamaged)
		case info.Size() > limit:
			return fmt.Errorf("%w: its %d bytes are more than the %d that podctl writes",
				ErrDamaged, info.Size(), limit)
		}
		for _, check := range checks {
			if err = check(path, info); err != nil {
				return err
			}
		}
		text, err = io.ReadAll(io.LimitReader(f, limit))
		return err
	})
	return text, err
}

// Sync writes a file to the disk, or does nothing.
type Sync func(*os.File) error

// Durable is the Sync for data that must survive a crash of the machine.
func Durable(f *os.File) error { return f.Sync() }

// Complete is the Sync for a file that a crash of the machine may lose, but must not leave empty or incomplete.
func Complete(f *os.File) error {
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return err
	}
	return f.Sync()
}

// Volatile is the Sync for data that may be lost in a crash of the machine.
func Volatile(*os.File) error { return nil }

// Create writes a new file. It replaces leftovers of a killed process under this name. After an error the file does not
// exist.
func (d Dir) Create(path string, text []byte, perm fs.FileMode, sync Sync) error {
	err := d.MkdirAll(filepath.Dir(path), privateMode)
	if err == nil {
		err = d.Remove(path)
	}
	if err != nil {
		return err
	}
	return d.In(path, func(root *os.Root, name string) error {
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if err != nil {
			return err
		}
		if err = f.Chmod(perm); err == nil {
			_, err = f.Write(text)
		}
		if err == nil {
			err = sync(f)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return errors.Join(err, root.Remove(name))
		}
		return nil
	})
}

// Replace writes the file unfinished and renames it to path.
func (d Dir) Replace(unfinished, path string, text []byte, perm fs.FileMode, sync Sync) error {
	err := d.MkdirAll(filepath.Dir(path), privateMode)
	if err == nil {
		err = d.Create(unfinished, text, perm, sync)
	}
	if err != nil {
		return err
	}
	err = d.In(path, func(root *os.Root, name string) error {
		from, relErr := d.relative(unfinished)
		if relErr != nil {
			return relErr
		}
		return root.Rename(from, name)
	})
	if err != nil {
		return errors.Join(err, d.Remove(unfinished))
	}
	return d.SyncDir(filepath.Dir(path), sync)
}

// SyncDir writes the names in a directory to the disk.
func (d Dir) SyncDir(path string, sync Sync) error {
	return d.In(path, func(root *os.Root, name string) error {
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(sync(f), f.Close())
	})
}
