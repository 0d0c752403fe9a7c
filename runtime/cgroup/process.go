package cgroup

import (
	"fmt"
	"os"
	"time"

	"github.com/opencontainers/cgroups"
)

// Group is the cgroup of a process. Changed is when it was created, or when a cgroup directly below it was created or
// removed. cAdvisor shows this as the time of its creation.
type Group struct {
	Name    string
	Changed time.Time
}

// Of returns the cgroup of a process in which its processor time and its memory are counted.
func (Machine) Of(pid int) (Group, error) {
	t, err := findTree()
	if err != nil {
		return Group{}, err
	}
	names, err := cgroups.ParseCgroupFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return Group{}, err
	}
	return groupOf(t, names)
}

// groupOf returns the cgroup of a process from its cgroups by controller (kubelet: getContainer). With version 1, one
// cgroup must count both. That of systemd may not exist for these controllers, if systemd does not count a unit.
func groupOf(t *tree, names map[string]string) (Group, error) {
	name := names[""]
	if !t.unified {
		if name = names["memory"]; name != names["cpuacct"] {
			return Group{}, fmt.Errorf("cgroups %s and %s of one process", names["cpuacct"], name)
		}
		if unit := names["name=systemd"]; unit != "" {
			name = unit
		}
	}
	h, found := t.find("memory")
	if !found || checkName(name) != nil {
		return Group{}, fmt.Errorf("%q is not a cgroup of its own for a process", name)
	}
	info, err := os.Stat(h.at(name))
	if err != nil {
		return Group{}, err
	}
	return Group{Name: name, Changed: info.ModTime()}, nil
}
