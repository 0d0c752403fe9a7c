package cgroup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/moby/sys/mountinfo"
)

// tree is where a machine's cgroups lie: one directory with version 2, one for
// each controller, or several of them, with version 1.
type tree struct {
	// unified tells version 2.
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
// runs, and the table of mounts has several lines for each pod of the node.
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

// cgroupMounts reads the table of mounts. Every container of the node has its lines in
// it, long ones: only those that can be of a cgroup are taken apart.
func cgroupMounts() (mounts []*mountinfo.Info, err error) {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var table bytes.Buffer
	lines := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if bytes.Contains(line, []byte(" - cgroup")) {
			table.Write(line)
		}
		switch {
		case errors.Is(err, io.EOF):
			return mountinfo.GetMountsFromReader(&table, mountinfo.FSTypeFilter("cgroup", "cgroup2"))
		case err != nil:
			return nil, err
		}
	}
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

// has tells that a controller can be used.
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

// exists tells that a cgroup is there for every controller that a kubelet looks
// for and the machine has.
func (t *tree) exists(name string) bool {
	looked := false
	for _, controller := range kubeletControllers() {
		h, ok := t.find(controller)
		if !ok {
			continue
		}
		looked = true
		if !t.controlled(h, name, controller) {
			return false
		}
	}
	return looked
}

// controlled tells that a cgroup is there for one controller. With version 2 the
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

// empty tells that no cgroup lies in one, in any hierarchy.
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
