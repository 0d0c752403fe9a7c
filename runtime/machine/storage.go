package machine

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// FileSystem describes the use of a file system, in bytes and in inodes. Numbers are capped so that a percentage can be
// computed without an overflow.
type FileSystem struct {
	// Size and Inodes are totals. Free and InodesFree are available to a user.
	Size, Free, Inodes, InodesFree int64
	// Device is the device number of its files.
	Device uint64
}

// FileSystemOf returns the file system of a directory. Its error does not name the directory.
func FileSystemOf(dir string) (FileSystem, error) {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Stat(dir, &st), unix.Statfs(dir, &fs)); err != nil {
		return FileSystem{}, err
	}
	block := uint64(fs.Bsize) //nolint:unconvert,nolintlint // another type on other machines
	count := func(n uint64) int64 {
		return int64(min(n, math.MaxInt64/100)) // bounded
	}
	return FileSystem{
		Size:       count(fs.Blocks * block),
		Free:       count(fs.Bavail * block),
		Inodes:     count(fs.Files),
		InodesFree: count(fs.Ffree),
		Device:     uint64(st.Dev), //nolint:unconvert,nolintlint // another type on other machines
	}, nil
}

// StorageBytes returns the size of a directory's file system, or zero if it cannot be read.
func StorageBytes(dir string) int64 {
	fs, err := FileSystemOf(dir)
	if err != nil {
		return 0
	}
	return fs.Size
}
