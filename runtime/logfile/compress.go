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
	entries, err := dir.Entries()
	if err != nil {
		return fmt.Errorf("compressing old logs: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), name+".") {
			names = append(names, entry.Name())
		}
	}
	var errs []error
	unfinished := func(old string) bool {
		return strings.HasSuffix(old, compressing) || slices.Contains(names, old+Compressed)
	}
	for _, old := range names {
		if unfinished(old) {
			errs = append(errs, safefs.IgnoreMissing(dir.Remove(old)))
		}
	}
	for _, old := range names {
		if !unfinished(old) && !strings.HasSuffix(old, Compressed) {
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
		return errors.Join(err, safefs.IgnoreMissing(dir.Remove(name+suffix)))
	}
	return dir.Remove(name)
}
