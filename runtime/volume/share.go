package volume

import (
	"fmt"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// propagates tells that a container wants to see, or to make seen, what is
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
	dir := c.Path(vol)
	if shared, err := isShared(dir); err != nil || shared {
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

// isShared tells that the mount in which a directory lies is shared.
func isShared(dir string) (bool, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.ParentsFilter(dir))
	if err != nil {
		return false, fmt.Errorf("looking for mounts: %w", err)
	}
	var innermost *mountinfo.Info
	for _, m := range mounts {
		if innermost == nil || len(m.Mountpoint) >= len(innermost.Mountpoint) {
			innermost = m
		}
	}
	return innermost != nil && strings.Contains(innermost.Optional, "shared:"), nil
}
