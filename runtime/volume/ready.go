package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/state"
)

// ready reports whether a volume is complete. The marker alone does not say so: a
// reboot takes what lies in memory and leaves the marker.
func (c Context) ready(vol *v1.Volume) (bool, error) {
	marked, err := c.marked(vol)
	if err != nil || !marked {
		return false, err
	}
	dir, err := c.Path(vol)
	if err != nil {
		return false, err
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false, ignoreMissing(err)
	}
	if right, err := onMedium(dir, medium(vol)); err != nil || !right {
		return false, err
	}
	if !c.propagates(vol.Name) {
		return true, nil
	}
	return isShared(dir)
}

// onMedium reports whether a directory lies on its medium, which an edit may have changed.
func onMedium(dir string, m v1.StorageMedium) (bool, error) {
	if m != v1.StorageMediumDefault {
		return isMounted(dir, fsTypeOf(m))
	}
	covered, err := isCovered(dir)
	return !covered, err
}

// marker is the file that is there once a volume is complete.
func (c Context) marker(vol *v1.Volume) (string, error) {
	return c.Pod.VolumeMarker(pluginOf(vol), vol.Name)
}

// marked reports whether the marker is there.
func (c Context) marked(vol *v1.Volume) (bool, error) {
	path, err := c.marker(vol)
	if err == nil {
		_, err = os.Lstat(path)
	}
	return err == nil, ignoreMissing(err)
}

// mark notes that a volume is complete, where a kubelet would look for it.
func (c Context) mark(vol *v1.Volume) error {
	path, err := c.marker(vol)
	if err != nil {
		return err
	}
	dir, err := c.Pod.Make(filepath.Dir(path), 0o750)
	if err != nil {
		return err
	}
	return errors.Join(dir.Touch(filepath.Base(path), 0o644), dir.Close())
}

// unmark takes the word back that a volume is complete: whoever is killed while he makes it
// anew leaves one that is not.
func (c Context) unmark(vol *v1.Volume) error {
	path, err := c.marker(vol)
	if err != nil {
		return err
	}
	return c.removeFile(path)
}

// removeFile removes a file in one of the pod's directories, if it is there.
func (c Context) removeFile(path string) error {
	dir, err := c.Pod.Open(filepath.Dir(path))
	if err != nil {
		return ignoreMissing(err)
	}
	return errors.Join(dir.Remove(filepath.Base(path)), dir.Close())
}

// removeTree removes something in one of the pod's directories with all that is in it, if
// it is there. It follows no links, and enters no mounts.
func removeTree(p state.Pod, path string) error {
	dir, err := p.Open(filepath.Dir(path))
	if err != nil {
		return ignoreMissing(err)
	}
	return errors.Join(dir.RemoveAll(filepath.Base(path)), dir.Close())
}

// tearDown removes one volume that could not be completed.
func (c Context) tearDown(vol *v1.Volume) error {
	marker, err := c.marker(vol)
	if err != nil {
		return err
	}
	dir, err := c.Path(vol)
	if err != nil {
		return err
	}
	if err := removeTree(c.Pod, filepath.Dir(marker)); err != nil {
		return err
	}
	if err := unmountBelow(dir); err != nil {
		return err
	}
	return removeTree(c.Pod, dir)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
