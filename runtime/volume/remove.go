package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state"
)

// RemoveAll unmounts and removes all files of a pod except the checkpoint: its volumes, bound subPaths, hosts file,
// termination messages, and others in its directory. It unmounts first, never enters a mount and does not follow links,
// so it does not touch paths of the host. It may be called again after a failure.
func RemoveAll(p state.Pod) error {
	return removeEntries(p, func(string) bool { return true })
}

// Reclaim unmounts and removes the volumes of a pod that has ended, and frees its range of ids (kubelet:
// SyncTerminatedPod). Its other files, such as termination messages, stay. It is as careful as RemoveAll.
func Reclaim(p state.Pod) error {
	return removeEntries(p, state.IsOfVolumes)
}

// Remain reports whether a pod has files that Reclaim removes, or may have.
func Remain(p state.Pod) bool {
	entries, err := entriesOf(p)
	return err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return state.IsOfVolumes(e.Name())
	})
}

// removeEntries removes the entries of a pod's directory with the wanted names.
func removeEntries(p state.Pod, wanted func(name string) bool) error {
	entries, err := entriesOf(p)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !wanted(e.Name()) })
	if err != nil || len(entries) == 0 {
		return err
	}
	err = unmountAndRemove(p, func() error {
		for _, name := range removalOrder(p, entries) {
			if failed := removeTree(p, filepath.Join(p.Dir(), name)); failed != nil {
				return failed
			}
		}
		return nil
	}, p.SubPaths(), p.Dir())
	return safefs.Wrapf(err, "removing the pod's volumes")
}

// unmountAndRemove unmounts everything at and below directories of a pod, and then calls remove. The kernel unmounts
// covered mounts when their directory is removed.
func unmountAndRemove(p state.Pod, remove func() error, dirs ...string) error {
	work := func() error {
		for _, dir := range dirs {
			if err := unmountBelow(dir); err != nil {
				return err
			}
		}
		return remove()
	}
	err := work()
	if errors.Is(err, errStays) {
		return revealed(p.Dir(), work)
	}
	return err
}

// entriesOf returns the entries of the pod's directory, or nil if it does not exist.
func entriesOf(p state.Pod) ([]fs.DirEntry, error) {
	dir, err := p.Open(p.Dir())
	if err != nil {
		return nil, safefs.IgnoreMissing(err)
	}
	entries, err := dir.Entries()
	return entries, errors.Join(err, dir.Close())
}

// removalOrder returns the names to remove from a pod's directory. The markers come first, so that a half-removed
// volume does not count as complete.
func removalOrder(p state.Pod, entries []fs.DirEntry) []string {
	first := filepath.Base(p.Plugins())
	var names []string
	for _, entry := range entries {
		switch name := entry.Name(); name {
		case filepath.Base(p.Checkpoint().Path()):
		case first:
			names = slices.Insert(names, 0, name)
		default:
			names = append(names, name)
		}
	}
	return names
}

// unmountRounds limits the searches for mounts. Several are needed because mounts can be stacked.
const unmountRounds = 50

// unmountBelow unmounts everything at and below a directory, the latest mount first.
func unmountBelow(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	for range unmountRounds {
		mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
		if err != nil {
			return fmt.Errorf("looking for mounts: %w", err)
		}
		if len(mounts) == 0 {
			return nil
		}
		left := 0
		for _, m := range slices.Backward(mounts) {
			switch err := unmount(m.Mountpoint); {
			case errors.Is(err, unix.EINVAL), safefs.Missing(err):
				// Another mount covers it, or it has gone.
				left++
			case err != nil:
				return err
			}
		}
		if left == len(mounts) {
			break
		}
	}
	return fmt.Errorf("%w below %s", errStays, dir)
}

// errStays reports a mount that cannot be unmounted by its path.
var errStays = errors.New("something keeps being mounted")

// unmount unmounts a path. A mount that a process of the host still uses is detached: it vanishes from the path at
// once, and from memory with that process.
func unmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	}
	if err != nil {
		return &os.PathError{Op: "unmount", Path: path, Err: err}
	}
	return nil
}
