package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/nofollow"
)

// The kubelet's limits for the log of one container (containerLogMaxSize,
// containerLogMaxFiles): its size in bytes, and how many files there are, the one
// that is written included.
const (
	sizeMax  = 10 << 20
	filesMax = 5
)

// Full reports whether a log which is being written is due to be rotated. One that cannot be
// looked at safely is not.
func Full(path string) bool {
	dir, err := openDir(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer dir.close() //nolint:errcheck // nothing was written through it
	handle, info, err := nofollow.Handle(dir.f, dir.base)
	if err != nil {
		// Moved aside and never opened again: the runtime was not told.
		return errors.Is(err, fs.ErrNotExist)
	}
	defer handle.Close() //nolint:errcheck // nothing was written through it
	return info.Mode().IsRegular() && info.Size() >= sizeMax
}

// Move renames a log to another name in its directory, on the descriptor of that directory, and
// never in the place of another file. The error is fs.ErrExist when there is one, and
// fs.ErrNotExist when there is no log.
func Move(path, to string) (err error) {
	if filepath.Dir(path) != filepath.Dir(to) {
		return fmt.Errorf("moving %s: %s is in another directory", path, to)
	}
	dir, err := openDir(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.close()) }()
	fd := int(dir.f.Fd())
	if err = unix.Renameat2(fd, dir.base, fd, filepath.Base(to), unix.RENAME_NOREPLACE); err != nil {
		return fmt.Errorf("moving %s to %s: %w", path, filepath.Base(to), err)
	}
	return nil
}

// DropOld removes the oldest of the files into which a log was moved aside.
func DropOld(path string) (err error) {
	dir, err := openDir(path)
	if err != nil {
		return missing(err)
	}
	defer func() { err = errors.Join(err, dir.close()) }()
	files, err := dir.rotated()
	if files == nil {
		return err
	}
	// If there are too many, the next call removes more.
	for _, old := range files[:max(len(files)-(filesMax-1), 0)] {
		if err := missing(unix.Unlinkat(int(dir.f.Fd()), old.name, 0)); err != nil {
			return fmt.Errorf("removing an old log: %s: %w", filepath.Join(dir.path, old.name), err)
		}
	}
	return nil
}
