package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state"
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
	last := len(there) - 1
	switch {
	case len(missing) > 0:
		info, err := root.Stat()
		if err != nil {
			return nil, err
		}
		made, err := root.MakeSub(info.Mode(), info.Mode(), slices.Concat(there, missing)...)
		if err != nil {
			return nil, fmt.Errorf("creating it: %w", err)
		}
		defer made.Close() //nolint:errcheck // A handle on a directory.
		return made.File()
	case last < 0:
		return root.File()
	}
	dir, err := root.Sub(there[:last]...)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	return openHandle(dir, there[last])
}

// openHandle opens what a name in a directory of the volume stands for, without reading it:
// a pipe or a device would answer.
func openHandle(dir *safefs.Dir, name string) (*os.File, error) {
	f, info, err := dir.Handle(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, errors.Join(errors.New("it has become a symbolic link"), f.Close())
	}
	return f, err
}

// bindTarget is the place of one subPath in the pod's directory.
type bindTarget struct {
	pod  state.Pod
	path string
}

// bind mounts what a handle holds onto the target, which becomes of the same kind.
// A target that shows the same thing already stays as it is.
func (t bindTarget) bind(source *os.File) error {
	wanted, err := source.Stat()
	if err != nil {
		return err
	}
	same, err := t.release(wanted)
	if err != nil || same {
		return err
	}
	if err = t.make(wanted); err != nil {
		return err
	}
	err = unix.Mount(safefs.ProcPath(source), t.path, "", unix.MS_BIND, "")
	if err != nil {
		return errors.Join(fmt.Errorf("binding it to %s: %w", t.path, err), t.remove())
	}
	return nil
}

// release reports whether the target shows what is wanted, and if not, makes
// room for it.
func (t bindTarget) release(wanted fs.FileInfo) (bool, error) {
	have, err := os.Lstat(t.path)
	if err != nil {
		return false, safefs.IgnoreMissing(err)
	}
	mounted, err := mountinfo.Mounted(t.path)
	if err != nil {
		return false, err
	}
	if mounted && os.SameFile(have, wanted) {
		return true, nil
	}
	if have.Mode()&fs.ModeSymlink != 0 {
		// Nothing is mounted there, and what it leads to is not the pod's.
		return false, t.remove()
	}
	return false, unmountAndRemove(t.pod, t.remove, t.path)
}

// remove removes a target on which nothing is mounted. What is in a directory stays.
func (t bindTarget) remove() error {
	dir, err := t.pod.Open(filepath.Dir(t.path))
	if err != nil {
		return err
	}
	name := filepath.Base(t.path)
	err = dir.Remove(name)
	if errors.Is(err, unix.EISDIR) {
		err = dir.RemoveDir(name)
	}
	return errors.Join(err, dir.Close())
}

func (t bindTarget) make(wanted fs.FileInfo) error {
	if wanted.IsDir() {
		return t.pod.MakeDir(t.path, 0o750)
	}
	return state.Touch(t.pod, t.path, 0o640)
}
