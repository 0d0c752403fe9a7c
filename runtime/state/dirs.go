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

// makeAll opens a directory of podctl's own, and makes it and those above it if need be.
func makeAll(path string, above, perm fs.FileMode) (*safefs.Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return safefs.MakeAll(path, above, perm)
}

// makeDirs makes a directory of podctl's own, and those that are missing above it.
func makeDirs(path string, above, perm fs.FileMode) error {
	dir, err := makeAll(path, above, perm)
	if err != nil {
		return err
	}
	return dir.Close()
}

// openDir opens a directory of podctl's own.
func openDir(path string) (*safefs.Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return safefs.OpenDir(path)
}

// entriesOf lists a directory that may be missing.
func entriesOf(path string) ([]fs.DirEntry, error) {
	dir, err := openDir(path)
	if err != nil {
		return nil, safefs.IgnoreMissing(err)
	}
	entries, err := dir.Entries()
	return entries, errors.Join(err, dir.Close())
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
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
func readRegular(path string, limit int64) ([]byte, error) {
	return readChecked(path, limit, func(string, fs.FileInfo) error { return nil })
}

// readPrivate reads such a file, which only its owner may read.
func readPrivate(path string, limit int64) ([]byte, error) {
	return readChecked(path, limit, safefs.CheckPrivate)
}

func readChecked(path string, limit int64, check func(path string, info fs.FileInfo) error) (text []byte, err error) {
	var f *os.File
	err = safefs.InDirOf(path, func(dir *safefs.Dir, name string) (err error) {
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
