package volume

import (
	"errors"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state"
)

// ready reports whether the volume is complete. The marker is not enough: a reboot removes volumes in memory but not
// their markers.
func (m *mounter) ready() (bool, error) {
	marker, err := m.marker()
	if err != nil {
		return false, err
	}
	marked, err := marker.isSet()
	if err != nil || !marked {
		return false, err
	}
	dir, err := m.path()
	if err != nil {
		return false, err
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false, safefs.IgnoreMissing(err)
	}
	if right, err := onMedium(dir, medium(m.vol.Volume)); err != nil || !right {
		return false, err
	}
	if !m.propagates() {
		return true, nil
	}
	return isShared(dir)
}

// onMedium reports whether a directory lies on its medium, which an edit of the manifest may have changed.
func onMedium(dir string, m v1.StorageMedium) (bool, error) {
	if m != v1.StorageMediumDefault {
		return isMounted(dir, fsTypeOf(m))
	}
	covered, err := isCovered(dir)
	return !covered, err
}

// mark is the file that marks a volume as complete, where a kubelet expects it.
type mark struct {
	pod  state.Pod
	path string
}

// isSet reports whether the volume is marked as complete.
func (m mark) isSet() (bool, error) {
	_, err := os.Lstat(m.path)
	return err == nil, safefs.IgnoreMissing(err)
}

// set marks the volume as complete.
func (m mark) set() error { return state.Touch(m.pod, m.path, 0o644) }

// clear removes the mark, so that a kill while the volume is recreated leaves it incomplete.
func (m mark) clear() error { return removeIn(m.pod, m.path, (*safefs.Dir).Remove) }

// removeIn removes a name from one of the pod's directories, if it exists.
func removeIn(p state.Pod, path string, remove func(dir *safefs.Dir, name string) error) error {
	dir, err := p.Open(filepath.Dir(path))
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	return errors.Join(remove(dir, filepath.Base(path)), dir.Close())
}

// removeTree removes a tree from one of the pod's directories, if it exists. It does not follow links or enter mounts.
func removeTree(p state.Pod, path string) error { return removeIn(p, path, (*safefs.Dir).RemoveAll) }

// tearDown removes a volume that could not be completed.
func (m *mounter) tearDown() error {
	marker, err := m.marker()
	if err != nil {
		return err
	}
	dir, err := m.path()
	if err != nil {
		return err
	}
	if err := removeTree(m.Pod, filepath.Dir(marker.path)); err != nil {
		return err
	}
	return unmountAndRemove(m.Pod, func() error { return removeTree(m.Pod, dir) }, dir)
}

// propagates reports whether a container needs later mounts inside the volume to propagate, in either direction.
func (m *mounter) propagates() bool {
	for _, ref := range podspec.Containers(m.Desired.Pod) {
		for i := range ref.VolumeMounts {
			if mount := &ref.VolumeMounts[i]; mount.Name == m.vol.Name && mountPropagates(mount) {
				return true
			}
		}
	}
	return false
}
