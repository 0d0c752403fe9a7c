package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/safefs"
)

// fsType is a type of file system as reported by statfs.
type fsType int64

const (
	tmpfs     fsType = unix.TMPFS_MAGIC
	hugetlbfs fsType = unix.HUGETLBFS_MAGIC
)

func fsTypeOf(m v1.StorageMedium) fsType {
	if m == v1.StorageMediumMemory {
		return tmpfs
	}
	return hugetlbfs
}

// isMounted reports whether a file system of this type is mounted on a directory.
func isMounted(dir string, kind fsType) (bool, error) {
	mounted, err := mountinfo.Mounted(dir)
	if err != nil || !mounted {
		return false, safefs.IgnoreMissing(err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return fsType(st.Type) == kind, nil
}

// isCovered reports whether a file system of one of the media is mounted on a directory. A bind mount of the directory
// on itself, for mountPropagation, does not count. It shows a part of the file system below, which may also be in
// memory.
func isCovered(dir string) (bool, error) {
	mounted, err := mountinfo.Mounted(dir)
	if err != nil || !mounted {
		return false, safefs.IgnoreMissing(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false, safefs.IgnoreMissing(err)
	}
	mounts, err := mountinfo.GetMounts(mountedOn(dir))
	if err != nil || len(mounts) == 0 {
		return false, err
	}
	top := mounts[len(mounts)-1]
	return top.Root == "/" && (top.FSType == "tmpfs" || top.FSType == "hugetlbfs"), nil
}

// mountedOn selects the mounts on a directory, the latest last.
func mountedOn(dir string) mountinfo.FilterFunc {
	return func(m *mountinfo.Info) (skip, stop bool) { return m.Mountpoint != dir, false }
}

// uncover unmounts the media of a volume from its directory. Running containers keep their mounts.
func uncover(dir string) error {
	for range unmountRounds {
		if covered, err := isCovered(dir); err != nil || !covered {
			return err
		}
		if err := unmount(dir); err != nil {
			return err
		}
	}
	return fmt.Errorf("something keeps being mounted on %s", dir)
}

// mountMemory mounts a tmpfs unless one is mounted. With size 0 the kernel limits it to half of the machine's memory.
func mountMemory(dir string, size int64) error {
	if mounted, err := isMounted(dir, tmpfs); err != nil || mounted {
		return err
	}
	var options []string
	if size > 0 {
		options = append(options, fmt.Sprintf("size=%d", size))
	}
	// With noswap, nothing reaches a swap device. Kernels before 6.4 and user namespaces do not support it.
	err := mount("tmpfs", dir, "tmpfs", append(options, "noswap"))
	if errors.Is(err, unix.EINVAL) {
		err = mount("tmpfs", dir, "tmpfs", options)
	}
	return err
}

// mountHugePages mounts a hugetlbfs with one page size in bytes. An existing one with another page size is an error,
// because containers may use it.
func mountHugePages(dir string, size int64) error {
	mounted, err := isMounted(dir, hugetlbfs)
	if err != nil {
		return err
	}
	if !mounted {
		err = mount("nodev", dir, "hugetlbfs", []string{fmt.Sprintf("pagesize=%d", size)})
		if errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("%w: the machine has no huge pages of %d bytes", err, size)
		}
		return err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if st.Bsize != size {
		return fmt.Errorf("huge pages of %d bytes are mounted, but %d are requested: delete the pod first",
			st.Bsize, size)
	}
	return nil
}

// mount adds the attempted action to errors, and that it requires root.
func mount(source, dir, kind string, options []string) error {
	err := unix.Mount(source, dir, kind, 0, strings.Join(options, ","))
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("mounting %s on %s: %w: podctl has to run as root", kind, dir, err)
	case err != nil:
		return fmt.Errorf("mounting %s on %s: %w", kind, dir, err)
	}
	return nil
}

func mountPropagates(m *v1.VolumeMount) bool {
	return m.MountPropagation != nil && *m.MountPropagation != v1.MountPropagationNone
}

// share makes mounts inside a volume propagate to and from containers. A kubelet shares its whole root directory
// permanently at start. podctl has no such start, so it shares only the volume while the volume exists.
func share(dir string) error {
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
	return safefs.Wrapf(unix.Mount("", dir, "", unix.MS_SHARED, ""), "sharing %s for mountPropagation", dir)
}

// isShared reports whether the mount that contains a directory is shared.
func isShared(dir string) (bool, error) {
	m, err := mountOver(dir)
	return m != nil && strings.Contains(m.Optional, "shared:"), err
}

// mountOver returns the mount that contains a path, or nil if none is found.
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

// CheckPropagation returns the reason why mounts do not propagate between a path of the machine and a container. A
// runtime then refuses to create the container. Mounts propagate to a container only from a shared mount or a slave
// mount, and back only into a shared mount.
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
	return fmt.Errorf("mountPropagation %s: %s is in the mount on %s, which is not shared; "+
		"'mount --make-rshared %s' shares it",
		mode, path, m.Mountpoint, m.Mountpoint)
}
