package statedir

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

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
			sum += Blocks(info)
			inodes++
		}
		return nil
	})
	return sum, inodes
}

// Blocks is how much one file takes on disk.
func Blocks(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * BlockSize
	}
	return 0
}

// BlockSize is the unit of stat(2), whatever the file system's own is.
const BlockSize = 512
