package safefs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Usage is the disk usage of files and directories.
type Usage struct {
	// Bytes is the size of the used blocks. Inodes is the number of files and directories.
	Bytes, Inodes int64
}

// Limits of one walk. A directory stays open until all directories in it have been walked.
const (
	usageDepth = 100
	usageFiles = 10_000_000
	usageBatch = 64
)

// errCounted ends a walk that has seen usageFiles files.
var errCounted = errors.New("too many files")

// Usage returns the disk usage of the directory and everything below it in the same mount (kubelet: fs.DiskUsage). It
// calls yield after each few files, and returns yield's error with the usage so far. Containers may change the tree
// meanwhile. Files that are gone or cannot be read do not count, and neither do those below 100 directories, or beyond
// ten million files. So the result is too small rather than too large.
func (d *Dir) Usage(yield func() error) (Usage, error) { return d.usage(yield, usageDepth) }

// FileUsage returns the disk usage of the files in the directory, without the directory itself and those in it. See
// Usage.
func (d *Dir) FileUsage(yield func() error) (Usage, error) { return d.usage(yield, 0) }

func (d *Dir) usage(yield func() error, depth int) (Usage, error) {
	w := &usageWalk{yield: yield, left: usageFiles}
	var err error
	if w.top, err = statx(d.fd(), ""); err != nil {
		return Usage{}, &os.PathError{Op: "stat", Path: d.Path(), Err: err}
	}
	if depth > 0 {
		w.add(&w.top)
	}
	if err = w.walk(d.fd(), ".", depth); errors.Is(err, errCounted) {
		err = nil
	}
	return w.sum(), err
}

// usageWalk adds up the disk usage of files.
type usageWalk struct {
	yield func() error
	top   unix.Statx_t
	// left is how many more files the walk may see.
	left int
	// bytes and inodes are in units of 1/linkShares.
	bytes, inodes uint64
}

// linkShares is how many shares an inode has. Its links have equal shares, so an inode with several links in the tree
// counts once, and the walk does not have to remember it.
const linkShares = 1 << 10

// blockSize is the unit of blocks in statx(2), in bytes.
const blockSize = 512

func (w *usageWalk) add(st *unix.Statx_t) {
	links := uint64(1)
	if !isDir(st) {
		links = max(uint64(st.Nlink), 1)
	}
	w.bytes += st.Blocks * blockSize * linkShares / links
	w.inodes += linkShares / links
}

func (w *usageWalk) sum() Usage {
	const half = linkShares / 2
	return Usage{Bytes: int64((w.bytes + half) / linkShares), Inodes: int64((w.inodes + half) / linkShares)}
}

// walk adds the contents of a directory, and of depth levels of directories below it.
func (w *usageWalk) walk(parent int, name string, depth int) error {
	fd, err := openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil // it is gone, or not a directory any more
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close() //nolint:errcheck // Nothing was written.
	if st, err := statx(fd, ""); err != nil || name != "." && !w.contains(&st) {
		return nil // it was replaced
	}
	for {
		names, err := dir.Readdirnames(usageBatch)
		for _, one := range names {
			if failed := w.visit(fd, one, depth); failed != nil {
				return failed
			}
		}
		if failed := w.yield(); failed != nil || err != nil {
			return failed // err is the end of the directory, or it cannot be read
		}
	}
}

// visit adds a name in an open directory, with its contents if it is a directory.
func (w *usageWalk) visit(dir int, name string, depth int) error {
	if w.left--; w.left < 0 {
		return errCounted
	}
	st, err := statx(dir, name)
	if err != nil || !w.contains(&st) || isDir(&st) && depth == 0 {
		return nil //nolint:nilerr // it is gone, or does not count
	}
	w.add(&st)
	if !isDir(&st) {
		return nil
	}
	return w.walk(dir, name, depth-1)
}

// contains reports whether a file is on the walk's file system, and not the root of a mount.
func (w *usageWalk) contains(st *unix.Statx_t) bool {
	return st.Dev_major == w.top.Dev_major && st.Dev_minor == w.top.Dev_minor &&
		st.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0
}

func isDir(st *unix.Statx_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }

// statx describes a name in a directory, or the directory itself if name is empty. It mounts nothing, and does not wait
// for the server of a file system that is mounted there.
func statx(dir int, name string) (st unix.Statx_t, err error) {
	const flags = unix.AT_EMPTY_PATH | unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC
	err = unix.Statx(dir, name, flags, unix.STATX_TYPE|unix.STATX_NLINK|unix.STATX_BLOCKS, &st)
	return st, err
}
