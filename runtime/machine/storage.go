package machine

import (
	"math"

	"golang.org/x/sys/unix"
)

// StorageBytes is the size of the file system that a directory lies on; zero if that cannot be read.
func StorageBytes(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0
	}
	return int64(min(st.Blocks*uint64(st.Bsize), math.MaxInt64)) //nolint:gosec,unconvert,nolintlint // bounded; another type on other machines
}
