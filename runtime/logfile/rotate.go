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

// Limits bound the log of one container. What is zero is as a kubelet has it by default.
type Limits struct {
	// Size is the size in bytes at which a log is rotated (kubelet: containerLogMaxSize); one below zero
	// means never.
	Size int64
	// Files is how many files there are, the one that is written included (kubelet: containerLogMaxFiles).
	Files int
}

// Reached reports whether a log of that size is due to be rotated.
func (l Limits) Reached(size int64) bool {
	return l.Size >= 0 && size >= cmp.Or(l.Size, sizeMax)
}

// Full reports whether a log which is being written is due to be rotated. One that cannot be
// looked at safely is not.
func (l Limits) Full(path string) bool {
	dir, err := openDir(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer dir.Close() //nolint:errcheck // nothing was written through it
	info, err := dir.Lstat(dir.base)
	if err != nil {
		// Moved aside and never opened again: the runtime does not know.
		return errors.Is(err, fs.ErrNotExist)
	}
	return info.Mode().IsRegular() && l.Reached(info.Size())
}

// DropOld removes the oldest of the files into which the log of that name in a directory
// was moved aside.
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
