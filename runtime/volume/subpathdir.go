package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	goruntime "runtime"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// makeMissing creates directories inside a volume, one by one and each with the
// mode of the volume itself, so that the pod can use them.
func makeMissing(root *os.Root, there string, missing []string) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	return withoutUmask(func() error {
		at := there
		for _, part := range missing {
			at = path.Join(at, part)
			if err := makeInside(root, at, info.Mode()); err != nil {
				return fmt.Errorf("creating it: %w", err)
			}
		}
		return nil
	})
}

// withoutUmask does something on a thread that has a umask of its own, which takes nothing
// away: what is made has its mode at once. A directory that is there is taken to be the
// pod's, so that nobody would mend one whose maker was killed before it set the mode.
func withoutUmask(work func() error) error {
	done := make(chan error)
	go func() {
		// The thread ends with the goroutine, as nobody unlocks it.
		goruntime.LockOSThread()
		if unix.Unshare(unix.CLONE_FS) == nil {
			unix.Umask(0)
		}
		// Where that is forbidden the mode is set a moment later all the same.
		done <- work()
	}()
	return <-done
}

// makeInside creates one directory. Its mode is set through what was opened: the
// name may be somebody else's link by then.
func makeInside(root *os.Root, name string, mode fs.FileMode) error {
	if err := root.Mkdir(name, mode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir, err := root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(dir.Chmod(mode), dir.Close())
}

// openHandle opens what a name inside the volume stands for, without reading it:
// a pipe or a device would answer. The name has no links in it; one that is
// there by now is refused, or followed inside the volume only.
func openHandle(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = errors.New("it has become a symbolic link")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// bind mounts what a handle holds onto a target, which becomes of the same kind.
// A target that shows the same thing already stays as it is.
func (c Context) bind(source *os.File, target string) error {
	wanted, err := source.Stat()
	if err != nil {
		return err
	}
	same, err := releaseTarget(target, wanted)
	if err != nil || same {
		return err
	}
	if err = c.makeTarget(target, wanted); err != nil {
		return err
	}
	err = unix.Mount(fmt.Sprintf("/proc/self/fd/%d", source.Fd()), target, "", unix.MS_BIND, "")
	if err != nil {
		return errors.Join(fmt.Errorf("binding it to %s: %w", target, err), os.Remove(target))
	}
	return nil
}

// releaseTarget tells whether the target shows what is wanted, and if not, makes
// room for it.
func releaseTarget(target string, wanted fs.FileInfo) (bool, error) {
	have, err := os.Lstat(target)
	if err != nil {
		return false, ignoreMissing(err)
	}
	mounted, err := mountinfo.Mounted(target)
	if err != nil {
		return false, err
	}
	if mounted && os.SameFile(have, wanted) {
		return true, nil
	}
	if mounted {
		if err := unmount(target); err != nil {
			return false, err
		}
	}
	return false, os.Remove(target)
}

func (c Context) makeTarget(target string, wanted fs.FileInfo) error {
	if wanted.IsDir() {
		return c.Pod.MakeDir(target, 0o750)
	}
	if err := c.Pod.MakeDir(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o640), f.Close())
}
