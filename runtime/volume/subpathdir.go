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

// elements returns the elements of a path from filepath.Clean.
func elements(path string) []string {
	if path == "." {
		return nil
	}
	return strings.Split(path, "/")
}

// makeMissing opens a path inside a volume with O_PATH. It creates missing directories with the mode of the volume, so
// that the pod can use them. Neither list may contain links. makeMissing returns an error if a link has appeared
// meanwhile.
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

// openHandle opens a name in a directory of the volume with O_PATH, because reading a pipe or a device could block.
func openHandle(dir *safefs.Dir, name string) (*os.File, error) {
	f, info, err := dir.Handle(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, errors.Join(errors.New("it has become a symbolic link"), f.Close())
	}
	return f, err
}

// bindTarget is the path of one bound subPath in the pod's directory.
type bindTarget struct {
	pod  state.Pod
	path string
}

// bind mounts an open file on the target, which it creates with the same type. A target that already shows this file is
// not changed.
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

// release reports whether the target already shows the wanted file. If not, it removes the target.
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
		// Nothing is mounted on a link, and its target does not belong to the pod.
		return false, t.remove()
	}
	return false, unmountAndRemove(t.pod, t.remove, t.path)
}

// remove removes a target without a mount. It does not remove a directory that is not empty.
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
