package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
)

// ready tells that a volume is complete. The marker alone does not say so: a
// reboot takes what lies in memory and leaves the marker.
func (c Context) ready(vol *v1.Volume) (bool, error) {
	if _, err := os.Lstat(c.marker(vol)); err != nil {
		return false, ignoreMissing(err)
	}
	dir := c.Path(vol)
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

// onMedium tells that a directory lies on its medium, which an edit may have changed.
func onMedium(dir string, m v1.StorageMedium) (bool, error) {
	if m != v1.StorageMediumDefault {
		return isMounted(dir, fsTypeOf(m))
	}
	covered, err := isCovered(dir)
	return !covered, err
}

// marker is the file that tells that a volume is complete.
func (c Context) marker(vol *v1.Volume) string {
	return c.Pod.VolumeMarker(pluginOf(vol), vol.Name)
}

// mark notes that a volume is complete, where a kubelet would look for it.
func (c Context) mark(vol *v1.Volume) error {
	path := c.marker(vol)
	if err := c.Pod.MakeDir(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o644), f.Close())
}

// unmark takes the word back that a volume is complete: whoever is killed while he makes it
// anew leaves one that is not.
func (c Context) unmark(vol *v1.Volume) error {
	return ignoreMissing(os.Remove(c.marker(vol)))
}

// tearDown removes one volume that could not be completed.
func (c Context) tearDown(vol *v1.Volume) error {
	marker, dir := filepath.Dir(c.marker(vol)), c.Path(vol)
	if err := removeTree(filepath.Dir(marker), filepath.Base(marker)); err != nil {
		return err
	}
	if err := unmountBelow(dir); err != nil {
		return err
	}
	return removeTree(filepath.Dir(dir), filepath.Base(dir))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
