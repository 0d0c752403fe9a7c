package logfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
)

// The kubelet's limits for the log of one container.
const (
	sizeMax  = 10 << 20
	filesMax = 5
)

// Limits limit the log of one container. Zero means the kubelet's default.
type Limits struct {
	// Size is the size in bytes at which a log is rotated (kubelet: containerLogMaxSize). A negative size means never.
	Size int64
	// Files is the number of files, including the current one (kubelet: containerLogMaxFiles).
	Files int
}

// Reached reports whether a log of this size is due for rotation.
func (l Limits) Reached(size int64) bool {
	return l.Size >= 0 && size >= cmp.Or(l.Size, sizeMax)
}

// Full reports whether a current log is due for rotation. A log that cannot be checked safely is not.
func (l Limits) Full(path string) bool {
	dir, err := openDir(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer dir.Close() //nolint:errcheck // nothing was written through it
	info, err := dir.Lstat(dir.base)
	if err != nil {
		// The log was renamed and never reopened: the runtime still writes to the renamed file.
		return errors.Is(err, fs.ErrNotExist)
	}
	return info.Mode().IsRegular() && l.Reached(info.Size())
}

// DropOld removes the oldest rotated files of a log in a directory.
func (l Limits) DropOld(dir *safefs.Dir, name string) error {
	names, err := asideNames(dir, name)
	if err != nil {
		return fmt.Errorf("removing an old log: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, compressing) })
	for _, old := range names[:max(len(names)-(cmp.Or(l.Files, filesMax)-1), 0)] {
		if err := dir.Remove(old); err != nil {
			return fmt.Errorf("removing an old log: %w", err)
		}
	}
	return nil
}
