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

// tree is where a machine's cgroups lie: one directory with version 2, one for
// each controller, or several of them, with version 1.
type tree struct {
	// unified is set for version 2.
	unified     bool
	hierarchies []hierarchy
}

// hierarchy is one mounted file system of cgroups.
type hierarchy struct {
	dir         string
	controllers []string
}

// at is the directory of a cgroup.
func (h hierarchy) at(name string) string { return filepath.Join(h.dir, name) }

// findTree looks where cgroups are mounted, once: that does not change while a process
// runs.
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

// cgroupMounts are the mounts of cgroups. Only a machine that has them in another place
// than all do is asked for its table of mounts: each container of the node has lines in
// that one, which the kernel takes its time to write.
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

// usualMounts are the mounts of cgroups below the root that systemd and all others use;
// nil when one that the process's own cgroups name is not there.
func usualMounts(root, own string, fileSystem func(path string) int64) []*mountinfo.Info {
	if fileSystem(root) == unix.CGROUP2_SUPER_MAGIC {
		return []*mountinfo.Info{{FSType: "cgroup2", Mountpoint: root}}
	}
	var mounts []*mountinfo.Info
	for line := range strings.Lines(own) {
		_, rest, _ := strings.Cut(line, ":")
		controllers, _, _ := strings.Cut(rest, ":")
		m := &mountinfo.Info{FSType: "cgroup", Mountpoint: filepath.Join(root, strings.TrimPrefix(controllers, "name=")), VFSOptions: controllers}
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

// fileSystemOf is the magic number of the file system that a path lies in; zero when
// there is no such path.
func fileSystemOf(path string) int64 {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return 0
	}
	return fs.Type
}

// newTree sorts the mounts. On a machine that has both versions the runtime uses
// version 1 and only puts processes into version 2, where cgroups have to be
// removed as well.
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
		if key := m.FSType + strings.Join(h.controllers, ","); !seen[key] { // A mount may be bound to other places too.
			seen[key] = true
			t.hierarchies = append(t.hierarchies, h)
		}
	}
	return t
}

// kubeletControllers are those in which a kubelet looks for a pod's cgroup.
func kubeletControllers() []string {
	return []string{"cpu", "cpuacct", "cpuset", "memory", "hugetlb", "pids", "name=systemd"}
}

// controllersOf reads the controllers of version 1 out of a mount's options, and
// the name of a hierarchy that has none.
func controllersOf(options string) []string {
	known := append(kubeletControllers(), "blkio", "devices", "freezer", "net_cls", "net_prio", "perf_event", "rdma", "misc")
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

// exists reports whether a cgroup is there for every controller that a kubelet looks
// for and the machine has. systemd takes cpuset back from a slice in which no unit asks for
// it, until the runtime hands it down for a container.
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

// remains reports whether a cgroup is there in any hierarchy.
func (t *tree) remains(name string) bool {
	return slices.ContainsFunc(t.hierarchies, func(h hierarchy) bool {
		info, err := os.Stat(h.at(name))
		return err == nil && info.IsDir()
	})
}

// controlled reports whether a cgroup is there for one controller. With version 2 the
// directory alone says nothing: the controller has to be handed down to it.
func (t *tree) controlled(h hierarchy, name, controller string) bool {
	if t.unified {
		return slices.Contains(readWords(filepath.Join(h.at(name), "cgroup.controllers")), controller)
	}
	info, err := os.Stat(h.at(name))
	return err == nil && info.IsDir()
}

// children lists the cgroups directly below one.
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

// empty reports whether no cgroup lies in one, in any hierarchy.
func (t *tree) empty(name string) bool {
	return !slices.ContainsFunc(t.hierarchies, func(h hierarchy) bool {
		children, err := h.children(name)
		return err != nil || len(children) > 0
	})
}

// readWords reads the words of a file; none if it cannot be read.
func readWords(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}
