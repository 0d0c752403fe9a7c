package volume

import (
	"io/fs"
	"os"
	"path"
	"syscall"
)

// The permission bits that fsGroup adds (kubelet: changeFilePermission): to a
// file of a volume that is the pod's to change, to a file of one that is not,
// and to every directory.
const (
	readWriteBits fs.FileMode = 0o660
	readOnlyBits  fs.FileMode = 0o440
	groupDirBits  fs.FileMode = fs.ModeSetgid | 0o110
)

// applyGroup gives a volume to a group, the depths first and the volume itself
// last, so that a group on the volume says that all below has it. Links are
// given, not followed.
func applyGroup(root *os.Root, group int, bits fs.FileMode) error {
	return applyGroupTo(root, ".", group, bits)
}

func applyGroupTo(root *os.Root, name string, group int, bits fs.FileMode) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		entries, err := fs.ReadDir(root.FS(), name)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := applyGroupTo(root, path.Join(name, entry.Name()), group, bits); err != nil {
				return err
			}
		}
		bits |= groupDirBits
	}
	if err := root.Lchown(name, -1, group); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	return root.Chmod(name, info.Mode()|bits)
}

// groupOf is the group a file belongs to.
func groupOf(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(stat.Gid)
	}
	return -1
}
