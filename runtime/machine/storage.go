package machine

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// FileSystem is how full a file system is, in bytes and in inodes. Numbers of which no percentage could
// be computed are cut.
type FileSystem struct {
	// Size and Inodes are all there are, Free and InodesFree what a user can still have.
	Size, Free, Inodes, InodesFree int64
	// Device is the number that the files in it have in common.
	Device uint64
}

// FileSystemOf looks at the file system that a directory lies on. Its error does not name the directory.
func FileSystemOf(dir string) (FileSystem, error) {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Stat(dir, &st), unix.Statfs(dir, &fs)); err != nil {
		return FileSystem{}, err
	}
	block := uint64(fs.Bsize)                                                 //nolint:gosec,unconvert,nolintlint // another type on other machines
	count := func(n uint64) int64 { return int64(min(n, math.MaxInt64/100)) } //nolint:gosec // bounded
	return FileSystem{
		Size: count(fs.Blocks * block), Free: count(fs.Bavail * block), Inodes: count(fs.Files), InodesFree: count(fs.Ffree),
		Device: uint64(st.Dev), //nolint:unconvert,nolintlint // another type on other machines
	}, nil
}

// StorageBytes is the size of the file system that a directory lies on; zero if that cannot be read.
func StorageBytes(dir string) int64 {
	fs, err := FileSystemOf(dir)
	if err != nil {
		return 0
	}
	return fs.Size
}
