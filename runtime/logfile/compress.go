package logfile

import (
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
)

const (
	// Compressed is the suffix of a compressed log.
	Compressed = ".gz"
	// compressing is the suffix of one that is being written.
	compressing = ".tmp"
)

// Compress compresses the rotated files of a log (kubelet: containerLogManager.compressLog). Call it before the log
// itself is rotated, so that the newest rotated file stays uncompressed for programs that follow the log. Compress
// removes unfinished files of an earlier call (cleanupUnusedLogs).
func Compress(dir *safefs.Dir, name string) error {
	names, err := asideNames(dir, name)
	errs := []error{err}
	// Backward, because an unfinished file sorts after the file it is made from.
	for _, old := range slices.Backward(names) {
		switch {
		case strings.HasSuffix(old, compressing), slices.Contains(names, old+Compressed):
			errs = append(errs, dir.Remove(old))
		case !strings.HasSuffix(old, Compressed):
			errs = append(errs, compress(dir, old))
		}
	}
	return safefs.Wrapf(errors.Join(errs...), "compressing old logs")
}

// compress replaces a file with a compressed one.
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
