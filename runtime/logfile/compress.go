package logfile

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
)

const (
	// Compressed is the end of the name of a compressed log.
	Compressed = ".gz"
	// compressing is that of one that is being written.
	compressing = ".tmp"
)

// Compress compresses the files into which the log of that name was moved aside (kubelet: containerLogManager.compressLog). It is
// called before the log itself is moved aside: who follows the log reads the newest of them as it is. What an earlier call left
// unfinished is removed (cleanupUnusedLogs).
func Compress(dir *safefs.Dir, name string) error {
	names, err := asideNames(dir, name)
	errs := []error{err}
	// Backward, because what is unfinished comes after the file of which it is to be.
	for _, old := range slices.Backward(names) {
		switch {
		case strings.HasSuffix(old, compressing), slices.Contains(names, old+Compressed):
			errs = append(errs, dir.Remove(old))
		case !strings.HasSuffix(old, Compressed):
			errs = append(errs, compress(dir, old))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("compressing old logs: %w", err)
	}
	return nil
}

// compress puts a compressed file in the place of another one.
func compress(dir *safefs.Dir, name string) error {
	from, info, err := dir.OpenRegular(name)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // nothing was written through it
	const suffix = Compressed + compressing
	to, err := dir.Create(name+suffix, info.Mode().Perm())
	if err != nil {
		return err
	}
	zip := gzip.NewWriter(to)
	_, err = io.Copy(zip, from)
	if err = errors.Join(err, zip.Close(), to.Sync(), to.Close()); err == nil {
		err = dir.Replace(name+suffix, name+Compressed)
	}
	if err != nil {
		return errors.Join(err, dir.Remove(name+suffix))
	}
	return dir.Remove(name)
}
