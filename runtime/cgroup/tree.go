package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// tree holds the directories of a machine's cgroups: one with version 2; with version 1, one for each controller or
// group of controllers.
type tree struct {
	// unified is set for version 2.
	unified     bool
	hierarchies []hierarchy
}

// hierarchy is one mounted cgroup file system.
type hierarchy struct {
	dir         string
	controllers []string
}

// at returns the directory of a cgroup.
func (h hierarchy) at(name string) string { return filepath.Join(h.dir, name) }

// findTree finds the mounts of cgroups once, because they do not change while a process runs.
//
//nolint:gochecknoglobals // a fact of the machine
var findTree = sync.OnceValues(readTree)

func readTree() (*tree, error) {
	mounts, err := cgroupMounts()
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	t := newTree(mounts)
	if len(t.hierarchies) == 0 {
		return nil, errors.New("no cgroups are mounted on this machine")
	}
	return t, nil
}

// cgroupMounts returns the mounts of cgroups. It reads the machine's mount table only if they are not in the usual
// places. The table has lines for each container of the node, so the kernel takes long to write it.
func cgroupMounts() ([]*mountinfo.Info, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	if mounts := usualMounts("/sys/fs/cgroup", string(own), fileSystemOf); mounts != nil {
		return mounts, nil
	}
	return mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
}

// usualMounts returns the mounts of cgroups below the usual root, which systemd uses. It returns nil if a hierarchy of
// the process's own cgroups is not there.
func usualMounts(root, own string, fileSystem func(path string) int64) []*mountinfo.Info {
	if fileSystem(root) == unix.CGROUP2_SUPER_MAGIC {
		return []*mountinfo.Info{{FSType: "cgroup2", Mountpoint: root}}
	}
	var mounts []*mountinfo.Info
	for line := range strings.Lines(own) {
		_, rest, _ := strings.Cut(line, ":")
		controllers, _, _ := strings.Cut(rest, ":")
		m := &mountinfo.Info{
			FSType:     "cgroup",
			Mountpoint: filepath.Join(root, strings.TrimPrefix(controllers, "name=")),
			VFSOptions: controllers,
		}
		kind := int64(unix.CGROUP_SUPER_MAGIC)
		if controllers == "" {
			m.FSType, m.Mountpoint, kind = "cgroup2", filepath.Join(root, "unified"), unix.CGROUP2_SUPER_MAGIC
		}
		if fileSystem(m.Mountpoint) != kind {
			return nil
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// fileSystemOf returns the magic number of a path's file system, or zero if the path does not exist.
func fileSystemOf(path string) int64 {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return 0
	}
	return fs.Type
}

// newTree sorts the mounts. On a machine with both versions, the runtime uses version 1 and only adds processes to
// version 2, where cgroups must be removed too.
func newTree(mounts []*mountinfo.Info) *tree {
	t := &tree{unified: !slices.ContainsFunc(mounts, func(m *mountinfo.Info) bool { return m.FSType == "cgroup" })}
	seen := map[string]bool{}
	for _, m := range mounts {
		h := hierarchy{dir: m.Mountpoint}
		switch {
		case t.unified:
			h.controllers = readWords(filepath.Join(m.Mountpoint, "cgroup.controllers"))
		case m.FSType == "cgroup":
			h.controllers = controllersOf(m.VFSOptions)
		}
		// A mount may also be bound to other places.
		if key := m.FSType + strings.Join(h.controllers, ","); !seen[key] {
			seen[key] = true
			t.hierarchies = append(t.hierarchies, h)
		}
	}
	return t
}

// kubeletControllers returns the controllers in which a kubelet looks for a pod's cgroup.
func kubeletControllers() []string {
	return []string{"cpu", "cpuacct", "cpuset", "memory", "hugetlb", "pids", "name=systemd"}
}

// controllersOf parses a mount's options for the controllers of version 1, or for the name of a hierarchy without
// controllers.
func controllersOf(options string) []string {
	known := append(kubeletControllers(),
		"blkio", "devices", "freezer", "net_cls", "net_prio", "perf_event", "rdma", "misc")
	return slices.DeleteFunc(strings.Split(options, ","), func(option string) bool {
		return !slices.Contains(known, option) && !strings.HasPrefix(option, "name=")
	})
}

// has reports whether a controller can be used.
func (t *tree) has(controller string) bool {
	_, ok := t.find(controller)
	return ok
}

func (t *tree) find(controller string) (hierarchy, bool) {
	i := slices.IndexFunc(t.hierarchies, func(h hierarchy) bool { return slices.Contains(h.controllers, controller) })
	if i < 0 {
		return hierarchy{}, false
	}
	return t.hierarchies[i], true
}

// exists reports whether a cgroup exists for every controller of the machine that a kubelet checks. A slice may lack
// cpuset: systemd disables it until a unit uses it, or until the runtime enables it for a container.
func (t *tree) exists(name string) bool {
	looked := false
	for _, controller := range kubeletControllers() {
		h, ok := t.find(controller)
		if !ok || t.unified && isSlice(name) && controller == "cpuset" {
			continue
		}
		looked = true
		if !t.controlled(h, name, controller) {
			return false
		}
	}
	return looked
}

// remains reports whether a cgroup exists in any hierarchy.
func (t *tree) remains(name string) bool {
	return slices.ContainsFunc(t.hierarchies, func(h hierarchy) bool {
		info, err := os.Stat(h.at(name))
		return err == nil && info.IsDir()
	})
}

// controlled reports whether a cgroup exists for one controller. With version 2 the directory is not enough: the
// controller must be enabled for it.
func (t *tree) controlled(h hierarchy, name, controller string) bool {
	if t.unified {
		return slices.Contains(readWords(filepath.Join(h.at(name), "cgroup.controllers")), controller)
	}
	info, err := os.Stat(h.at(name))
	return err == nil && info.IsDir()
}

// children returns the cgroups directly below one.
func (h hierarchy) children(name string) ([]string, error) {
	entries, err := os.ReadDir(h.at(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, filepath.Join(name, entry.Name()))
		}
	}
	return names, nil
}

// empty reports whether a cgroup has no child in any hierarchy.
func (t *tree) empty(name string) bool {
	return !slices.ContainsFunc(t.hierarchies, func(h hierarchy) bool {
		children, err := h.children(name)
		return err != nil || len(children) > 0
	})
}

// readWords returns the words of a file, or none if it cannot be read.
func readWords(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}
