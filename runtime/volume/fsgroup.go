package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/podctl/podctl/runtime/safefs"
)

// Permission bits that fsGroup adds (kubelet: changeFilePermission): to files that the pod may change, to files that it
// may only read, and to directories.
const (
	readWriteBits fs.FileMode = 0o660
	readOnlyBits  fs.FileMode = 0o440
	groupDirBits  fs.FileMode = fs.ModeSetgid | 0o110
)

// giveToPod gives a volume that the pod may change to the pod's group, if it has one.
func (c Context) giveToPod(dir *safefs.Dir) error {
	group := c.fsGroup()
	if group == nil {
		return nil
	}
	err := applyGroup(dir, int(*group), readWriteBits, depthMax)
	return safefs.Wrapf(err, "changing its group to %d (fsGroup)", *group)
}

// applyGroup gives a volume to a group. It handles the volume itself last, so that the group on the volume means that
// everything below has it. It changes links, not their targets. It checks and changes each file through one open
// handle, because containers may replace files. It refuses trees that are deeper than a number of directories, because
// each level has two open files.
func applyGroup(dir *safefs.Dir, group int, bits fs.FileMode, depth int) error {
	if depth < 0 {
		return fmt.Errorf("it has more than %d directories inside each other", depthMax)
	}
	for name, err := range dir.Names() {
		if err == nil {
			err = applyGroupTo(dir, name, group, bits, depth)
		}
		if err != nil {
			return err
		}
	}
	return dir.Give(group, bits|groupDirBits)
}

func applyGroupTo(dir *safefs.Dir, name string, group int, bits fs.FileMode, depth int) error {
	sub, err := dir.Open(name)
	if err == nil {
		return errors.Join(applyGroup(sub, group, bits, depth-1), sub.Close())
	}
	if !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	return dir.SetFileGroup(name, group, bits)
}

// ownerOf returns the user that owns a file.
func ownerOf(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(stat.Uid)
	}
	return -1
}

// groupOf returns the group that owns a file.
func groupOf(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(stat.Gid)
	}
	return -1
}
