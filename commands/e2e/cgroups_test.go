package e2e

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/podctl/podctl/runtime/cgroup"
)

// slicePrefix returns the prefix of the names of slices below a cgroup root.
func slicePrefix(root string) string { return strings.ReplaceAll(root, "-", "_") }

// cgroupRoots returns the possible cgroups of a root: with cgroupfs and with systemd.
func cgroupRoots(root string) []string {
	return []string{"/" + root, "/" + slicePrefix(root) + ".slice"}
}

// removeCgroups removes the remaining cgroups below a root, with any driver.
func removeCgroups(root string) error {
	var errs []error
	for _, name := range cgroupRoots(root) {
		errs = append(errs, cgroup.Machine{}.Remove(context.Background(), name))
	}
	return errors.Join(errs...)
}

// cgroupsBelow returns the directories below a cgroup root, in any hierarchy and with any driver.
func cgroupsBelow(root string) ([]string, error) {
	var found []string
	for _, name := range cgroupRoots(root) {
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			dirs, err := filepath.Glob(mount + name)
			if err != nil {
				return nil, err
			}
			for _, dir := range dirs {
				err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
					if errors.Is(err, fs.ErrNotExist) {
						return nil // An agent has just removed it.
					}
					if err == nil && entry.IsDir() {
						found = append(found, path)
					}
					return err
				})
				if err != nil {
					return nil, err
				}
			}
		}
	}
	return found, nil
}
