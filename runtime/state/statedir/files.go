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

// ErrDamaged says that a file is none that podctl wrote, or is cut off.
var ErrDamaged = errors.New("it is damaged")

// privateMode is the mode of directories that only podctl uses.
const privateMode = 0o700

// relative is a path below the state directory, relative to it.
func (d Dir) relative(path string) (string, error) {
	below, err := filepath.Rel(d.Path, path)
	if err != nil || !filepath.IsLocal(below) {
		return "", fmt.Errorf("%s does not lie in the state directory %s", path, d.Path)
	}
	return below, nil
}

// In does something with a file of the state directory, from the root that was checked. It is for what only podctl writes: a
// link there is root's own, or that of the user of this process.
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

// named gives an error the whole path in place of one that is relative to the root.
func named(path string, err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: strings.TrimSuffix(at.Op, "at"), Path: path, Err: at.Err}
	}
	if at := (*os.LinkError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: strings.TrimSuffix(at.Op, "at"), Path: path, Err: at.Err}
	}
	return err
}

// Open opens a directory of the state directory in which containers may write: no link is followed on the way.
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

// Make opens a directory as Open does. Those that are missing are made, the last one with perm and the others with above.
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

// MkdirAll makes a directory that only podctl uses, and those above it.
func (d Dir) MkdirAll(path string, perm fs.FileMode) error {
	if err := d.Prepare(); err != nil {
		return err
	}
	return d.In(path, func(root *os.Root, name string) error { return root.MkdirAll(name, perm) })
}

// Remove removes a file or an empty directory of the state directory; one that is gone is no error.
func (d Dir) Remove(path string) error { return safefs.IgnoreMissing(d.In(path, (*os.Root).Remove)) }

// RemoveIfEmpty removes a directory unless something is in it.
func (d Dir) RemoveIfEmpty(path string) error {
	err := d.Remove(path)
	if errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// Entries lists a directory of the state directory that may be missing.
func (d Dir) Entries(path string) (entries []fs.DirEntry, err error) {
	err = d.In(path, func(root *os.Root, name string) (err error) {
		entries, err = fs.ReadDir(root.FS(), name)
		return err
	})
	return entries, safefs.IgnoreMissing(err)
}

// Walk calls visit for a directory of the state directory, which may be missing, and for all that is in it. Links are not
// followed. The names are those of the elements below the directory.
func (d Dir) Walk(path string, visit func(names []string, entry fs.DirEntry) error) error {
	err := d.In(path, func(root *os.Root, top string) error {
		return fs.WalkDir(root.FS(), top, func(at string, entry fs.DirEntry, err error) error {
			if safefs.NotExist(err) {
				return nil // It was removed meanwhile, and hides nothing else.
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

// Lstat describes a file of the state directory.
func (d Dir) Lstat(path string) (info fs.FileInfo, err error) {
	err = d.In(path, func(root *os.Root, name string) (err error) {
		info, err = root.Lstat(name)
		return err
	})
	return info, err
}

// Exists reports whether something in the state directory has a path.
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

// Read reads a file that must be an ordinary one of at most so many bytes:
// neither a link to somewhere else nor a pipe that never ends.
func (d Dir) Read(path string, limit int64, checks ...func(path string, info fs.FileInfo) error) (text []byte, err error) {
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
			return fmt.Errorf("%w: its %d bytes are more than the %d that podctl writes", ErrDamaged, info.Size(), limit)
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

// Sync brings what was written to the disk, or does nothing.
type Sync func(*os.File) error

// Durable is for what must survive a crash of the machine.
func Durable(f *os.File) error { return f.Sync() }

// Volatile is for what a crash of the machine may lose.
func Volatile(*os.File) error { return nil }

// Create writes a new file, in the place of what a killed process left under its name. After an error there is none.
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

// Replace writes an unfinished file, and puts it in the place of another one.
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

// SyncDir brings the names in a directory to the disk.
func (d Dir) SyncDir(path string, sync Sync) error {
	return d.In(path, func(root *os.Root, name string) error {
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(sync(f), f.Close())
	})
}
