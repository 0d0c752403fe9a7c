package volume

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/mounts"
	"github.com/podctl/podctl/runtime/safefs"
)

// revealed runs work in a new mount namespace, after unmounting everything that covers mounts below dir. Other
// namespaces keep these mounts until the directory is removed; then the kernel unmounts them everywhere. The mounts of
// the machine do not change, and a killed podctl leaves no namespace behind.
func revealed(dir string, work func() error) error {
	done := make(chan error, 1)
	go func() {
		// The thread stays locked, so the thread and its namespace end with this function.
		goruntime.LockOSThread()
		err := reveal(dir)
		if err == nil {
			err = work()
		}
		done <- err
	}()
	return <-done
}

// reveal unmounts the covers in the calling thread's namespace. The directory below must be the same one: otherwise the
// covers hide something that does not belong to the pod.
func reveal(dir string) error {
	before, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if err = unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	for range unmountRounds {
		hidden, err := mounts.HiddenBelow(dir)
		if err != nil {
			return err
		}
		if len(hidden) == 0 {
			return sameDir(dir, before)
		}
		cover := hidden[0].Cover
		if err = unix.Unmount(cover, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH); err != nil {
			return &os.PathError{Op: "unmount", Path: cover, Err: err}
		}
	}
	return fmt.Errorf("something keeps being mounted over %s", dir)
}

func sameDir(dir string, before os.FileInfo) error {
	after, err := os.Lstat(dir)
	if err == nil && !os.SameFile(before, after) {
		err = errors.New("another directory is mounted over it")
	}
	return safefs.Wrapf(err, "mounts below %s are hidden", dir)
}
