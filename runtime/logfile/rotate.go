package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The kubelet's limits for the log of one container (containerLogMaxSize,
// containerLogMaxFiles): its size in bytes, and how many files there are, the one
// that is written included.
const (
	sizeMax  = 10 << 20
	filesMax = 5
)

// Full tells that a log which is being written is due to be rotated.
func Full(path string) bool {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		// Moved aside and never opened again: the runtime was not told.
		return true
	}
	return err == nil && info.Mode().IsRegular() && info.Size() >= sizeMax
}

// DropOld removes the oldest of the files into which a log was moved aside.
func DropOld(path string) error {
	files, err := rotated(path)
	if err != nil {
		return err
	}
	for _, old := range files[:max(len(files)-(filesMax-1), 0)] {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("removing an old log: %w", err)
		}
	}
	return nil
}

// rotated are the files into which a log was moved aside, the oldest first, by the
// kubelet's names: the file's own, a point and the time (and .gz).
func rotated(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, missing(err)
	}
	var files []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filepath.Base(path)+".") {
			files = append(files, filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
	return files, nil
}

// missing takes away the error about a file that is not there.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
