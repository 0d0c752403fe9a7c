package volume

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// The bits a volume gets for its group: to change what is in it, or to read it.
const (
	groupWrites fs.FileMode = 0o660
	groupReads  fs.FileMode = 0o440
)

// applyFSGroup gives a volume to the pod's group: group-writable, new files
// belonging to the group, or for content that is not the pod's to change,
// readable (kubelet: SetVolumeOwnership). Links are given, not followed.
func (c Context) applyFSGroup(dir string, bits fs.FileMode) error {
	sc := c.Desired.Pod.Spec.SecurityContext
	if sc == nil || sc.FSGroup == nil {
		return nil
	}
	var paths []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(paths) {
		if err := giveToGroup(path, int(*sc.FSGroup), bits); err != nil {
			return err
		}
	}
	return nil
}

func giveToGroup(path string, group int, bits fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := os.Lchown(path, -1, group); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	if info.IsDir() {
		bits |= fs.ModeSetgid | 0o110
	}
	return os.Chmod(path, info.Mode()|bits)
}
