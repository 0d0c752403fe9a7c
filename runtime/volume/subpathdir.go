package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// elements are those of a path that filepath.Clean has made.
func elements(path string) []string {
	if path == "." {
		return nil
	}
	return strings.Split(path, "/")
}

// makeMissing opens a path inside a volume as a mere handle. Directories that are missing are
// created, one by one and each with the mode of the volume itself, so that the pod can use
// them. Neither list has links in it; one that is there by now is refused.
func makeMissing(root *safefs.Dir, there, missing []string) (*os.File, error) {
	info, err := root.Stat()
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return makeInside(root, there, missing, info.Mode())
	}
	last := len(there) - 1
	if last < 0 {
		return root.File()
	}
	dir, err := root.Sub(there[:last]...)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	return openHandle(dir, there[last])
}

// makeInside creates directories below one of the volume.
func makeInside(root *safefs.Dir, there, missing []string, mode fs.FileMode) (*os.File, error) {
	dir, err := root.Sub(there...)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	made, err := dir.MakeSub(mode, mode, missing...)
	if err != nil {
		return nil, fmt.Errorf("creating it: %w", err)
	}
	defer made.Close() //nolint:errcheck // A handle on a directory.
	return made.File()
}

// openHandle opens what a name in a directory of the volume stands for, without reading it:
// a pipe or a device would answer.
func openHandle(dir *safefs.Dir, name string) (*os.File, error) {
	f, err := dir.Handle(name)
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
	same, err := c.releaseTarget(target, wanted)
	if err != nil || same {
		return err
	}
	if err = c.makeTarget(target, wanted); err != nil {
		return err
	}
	err = unix.Mount(safefs.ProcPath(source), target, "", unix.MS_BIND, "")
	if err != nil {
		return errors.Join(fmt.Errorf("binding it to %s: %w", target, err), c.removeTarget(target))
	}
	return nil
}

// releaseTarget reports whether the target shows what is wanted, and if not, makes
// room for it.
func (c Context) releaseTarget(target string, wanted fs.FileInfo) (bool, error) {
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
	return false, c.removeTarget(target)
}

// removeTarget removes a target on which nothing is mounted. What is in a directory stays.
func (c Context) removeTarget(target string) error {
	dir, err := c.Pod.Open(filepath.Dir(target))
	if err != nil {
		return err
	}
	name := filepath.Base(target)
	err = dir.Remove(name)
	if errors.Is(err, unix.EISDIR) {
		err = dir.RemoveDir(name)
	}
	return errors.Join(err, dir.Close())
}

func (c Context) makeTarget(target string, wanted fs.FileInfo) error {
	if wanted.IsDir() {
		return c.Pod.MakeDir(target, 0o750)
	}
	dir, err := c.Pod.Make(filepath.Dir(target), 0o750)
	if err != nil {
		return err
	}
	return errors.Join(dir.Touch(filepath.Base(target), 0o640), dir.Close())
}
