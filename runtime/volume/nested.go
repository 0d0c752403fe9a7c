package volume

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// nestedMounts returns where other volumes are mounted inside this one. The paths are relative to it, with outer paths
// first. Containers have the volume read-only, so only podctl can create these mount points (kubelet:
// MakeNestedMountpoints).
func nestedMounts(pod *v1.Pod, volume string) []string {
	var nested []string
	for _, ref := range podspec.Containers(pod) {
		for i := range ref.VolumeMounts {
			if ref.VolumeMounts[i].Name == volume {
				nested = append(nested, mountsBelow(ref.Container, ref.VolumeMounts[i].MountPath)...)
			}
		}
	}
	slices.Sort(nested)
	return slices.Compact(nested)
}

// mountsBelow returns the innermost mounts of a container below a path.
func mountsBelow(c *v1.Container, mountPath string) []string {
	base := path.Clean(mountPath) + "/"
	var found []string
	for i := range c.VolumeMounts {
		if below, ok := strings.CutPrefix(path.Clean(c.VolumeMounts[i].MountPath), base); ok {
			found = append(found, below)
		}
	}
	return slices.DeleteFunc(slices.Clone(found), func(one string) bool {
		return slices.ContainsFunc(found, func(other string) bool { return strings.HasPrefix(one, other+"/") })
	})
}

func makeNestedDirs(root *os.Root, dirs []string) error {
	for _, dir := range dirs {
		at := ""
		for part := range strings.SplitSeq(dir, "/") {
			at = path.Join(at, part)
			if info, err := root.Lstat(at); err == nil && (info.IsDir() || info.Mode()&fs.ModeSymlink != 0) {
				continue
			}
			if err := root.Mkdir(at, 0o755); err != nil {
				return fmt.Errorf("creating the mount point %s of another volume: %w", dir, err)
			}
			if err := root.Chmod(at, 0o755); err != nil {
				return fmt.Errorf("creating the mount point %s of another volume: %w", dir, err)
			}
		}
	}
	return nil
}
