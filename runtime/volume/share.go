package volume

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// propagates reports whether a container wants to see, or to make seen, what is
// mounted later inside a volume.
func (c Context) propagates(name string) bool {
	for _, ref := range podspec.Containers(c.Desired.Pod) {
		for i := range ref.VolumeMounts {
			if m := &ref.VolumeMounts[i]; m.Name == name && mountPropagates(m) {
				return true
			}
		}
	}
	return false
}

func mountPropagates(m *v1.VolumeMount) bool {
	return m.MountPropagation != nil && *m.MountPropagation != v1.MountPropagationNone
}

// share makes mounts inside a volume pass to and from containers, if one of them
// asks for that. A kubelet shares its whole root directory, at start and for
// good; podctl has no start, and shares just the volume, for as long as it
// lives.
func (c Context) share(vol *v1.Volume) error {
	if !c.propagates(vol.Name) {
		return nil
	}
	dir, err := c.Path(vol)
	if err != nil {
		return err
	}
	shared, err := isShared(dir)
	if err != nil || shared {
		return err
	}
	mounted, err := mountinfo.Mounted(dir)
	if err != nil {
		return err
	}
	if !mounted {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("binding %s to itself for mountPropagation: %w", dir, err)
		}
	}
	return makeShared(dir)
}

func makeShared(dir string) error {
	if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing %s for mountPropagation: %w", dir, err)
	}
	return nil
}

// isShared reports whether the mount in which a directory lies is shared.
func isShared(dir string) (bool, error) {
	m, err := mountOver(dir)
	return m != nil && strings.Contains(m.Optional, "shared:"), err
}

// mountOver is the mount in which a path lies; nil when none is found.
func mountOver(path string) (*mountinfo.Info, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.ParentsFilter(path))
	if err != nil {
		return nil, fmt.Errorf("looking for mounts: %w", err)
	}
	var innermost *mountinfo.Info
	for _, m := range mounts {
		if innermost == nil || len(m.Mountpoint) >= len(innermost.Mountpoint) {
			innermost = m
		}
	}
	return innermost, nil
}

// CheckPropagation says why mounts do not pass between a path of the machine and a
// container, for which a runtime refuses to create it: what is mounted there reaches a
// container only from a shared mount or a slave of one, and comes back only into one that is
// shared.
func CheckPropagation(path string, mode v1.MountPropagationMode) error {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	m, err := mountOver(path)
	if err != nil || m == nil || strings.Contains(m.Optional, "shared:") {
		return err
	}
	if mode == v1.MountPropagationHostToContainer && strings.Contains(m.Optional, "master:") {
		return nil
	}
	return fmt.Errorf("mountPropagation %s: %s lies in the mount on %s, which is not shared; 'mount --make-rshared %s' shares it",
		mode, path, m.Mountpoint, m.Mountpoint)
}
