package statedir

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// Size returns the disk usage in bytes of a file, or of a directory with its contents. It does not follow links and
// omits files that it cannot read.
func Size(path string) (sum int64) {
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is an estimate
		}
		if info, err := entry.Info(); err == nil {
			sum += Blocks(info)
		}
		return nil
	})
	return sum
}

// Blocks returns the disk usage of one file in bytes.
func Blocks(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * BlockSize
	}
	return 0
}

// BlockSize is the unit of blocks in stat(2), independent of the file system's block size.
const BlockSize = 512
