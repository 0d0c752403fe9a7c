package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// below is a path below the state directory, relative to it.
func (l Layout) below(path string) (string, error) {
	relative, err := filepath.Rel(l.Root, path)
	if err != nil || !filepath.IsLocal(relative) {
		return "", fmt.Errorf("%s does not lie in the state directory %s", path, l.Root)
	}
	return relative, nil
}

// openDir opens a directory of the state directory, from the root that was checked.
func (l Layout) openDir(path string) (*safefs.Dir, error) {
	relative, err := l.below(path)
	if err != nil {
		return nil, err
	}
	root, err := l.root()
	if err != nil {
		return nil, err
	}
	return root.Reach(relative)
}

// makeDir opens a directory of the state directory, from the root that was checked, and makes those that are missing.
func (l Layout) makeDir(path string, above, perm fs.FileMode) (*safefs.Dir, error) {
	relative, err := l.below(path)
	if err == nil {
		err = l.Prepare()
	}
	if err != nil {
		return nil, err
	}
	root, err := l.root()
	if err != nil {
		return nil, err
	}
	return root.MakePath(relative, above, perm)
}

// inDirOf does something with the name of a file of the state directory in its directory.
func (l Layout) inDirOf(path string, work func(dir *safefs.Dir, name string) error) error {
	dir, err := l.openDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(work(dir, filepath.Base(path)), dir.Close())
}

// removeFile removes a file of the state directory; one that is gone is no error.
func (l Layout) removeFile(path string) error {
	return safefs.IgnoreMissing(l.inDirOf(path, (*safefs.Dir).Remove))
}

// entriesOf lists a directory of the state directory that may be missing.
func (l Layout) entriesOf(path string) ([]fs.DirEntry, error) {
	dir, err := l.openDir(path)
	if err != nil {
		return nil, safefs.IgnoreMissing(err)
	}
	entries, err := dir.Entries()
	return entries, errors.Join(err, dir.Close())
}

// lstat describes a file of the state directory.
func (l Layout) lstat(path string) (info fs.FileInfo, err error) {
	err = l.inDirOf(path, func(dir *safefs.Dir, name string) (err error) {
		info, err = dir.Lstat(name)
		return err
	})
	return info, err
}

// exists reports whether something in the state directory has a path.
func (l Layout) exists(path string) (bool, error) {
	_, err := l.lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at the state directory: %w", err)
	}
	return true, nil
}

// readRegular reads a file that must be an ordinary one of at most so many bytes:
// neither a link to somewhere else nor a pipe that never ends.
func (l Layout) readRegular(path string, limit int64) ([]byte, error) {
	return l.readChecked(path, limit, func(string, fs.FileInfo) error { return nil })
}

// readPrivate reads such a file, which only its owner may read.
func (l Layout) readPrivate(path string, limit int64) ([]byte, error) {
	return l.readChecked(path, limit, safefs.CheckPrivate)
}

func (l Layout) readChecked(path string, limit int64, check func(path string, info fs.FileInfo) error) (text []byte, err error) {
	var f *os.File
	err = l.inDirOf(path, func(dir *safefs.Dir, name string) (err error) {
		f, err = dir.OpenFile(name, os.O_RDONLY, 0)
		return err
	})
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%w: it is a symbolic link", ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: it is not a regular file", ErrDamaged)
	case info.Size() > limit:
		return nil, fmt.Errorf("%w: its %d bytes are more than the %d that podctl writes", ErrDamaged, info.Size(), limit)
	}
	if err = check(path, info); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// Size is how much a file, or a directory with all that is in it, takes on disk.
// Links are not followed, and what cannot be read counts nothing.
func Size(path string) int64 {
	bytes, _ := Usage(path)
	return bytes
}

// Usage is Size with the number of files and directories.
func Usage(path string) (sum, inodes int64) {
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is an estimate
		}
		if info, err := entry.Info(); err == nil {
			sum += blocks(info)
			inodes++
		}
		return nil
	})
	return sum, inodes
}

// blocks is how much one file takes on disk.
func blocks(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * blockSize
	}
	return 0
}

// blockSize is the unit of stat(2), whatever the file system's own is.
const blockSize = 512
