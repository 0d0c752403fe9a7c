package kubernetes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// group is a cgroup of the machine, in each of its hierarchies, above all cgroups of the tests.
type group struct {
	name string
	// before maps the directory of a hierarchy to the previous cgroup of this process.
	before map[string]string
	// enabled lists the controllers that were not enabled at the root of version 2.
	enabled []string
}

func newGroup(name string) *group { return &group{name: name, before: map[string]string{}} }

// hierarchies reports whether the machine has version 2 of cgroups, or else returns the directories of the controllers
// of version 1.
func hierarchies() (version2 bool, controllers []string, err error) {
	if _, err = os.Stat(filepath.Join(cgroupsDir, "cgroup.controllers")); err == nil {
		return true, nil, nil
	}
	entries, err := os.ReadDir(cgroupsDir)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 || e.Name() == "unified" {
			continue
		}
		if _, missing := os.Stat(filepath.Join(cgroupsDir, e.Name(), "cgroup.procs")); missing == nil {
			controllers = append(controllers, e.Name())
		}
	}
	return false, controllers, err
}

// roots returns the directories of all hierarchies.
func roots() ([]string, error) {
	version2, controllers, err := hierarchies()
	if version2 {
		return []string{cgroupsDir}, err
	}
	for i, c := range controllers {
		controllers[i] = filepath.Join(cgroupsDir, c)
	}
	return controllers, err
}

// enter creates the cgroup and moves this process into it.
func (g *group) enter() error {
	list, err := roots()
	if err != nil {
		return err
	}
	version2 := len(list) == 1 && list[0] == cgroupsDir
	if version2 {
		if err = g.passOn(); err != nil {
			return err
		}
	}
	for _, root := range list {
		if g.before[root], err = ownCgroup(root); err != nil {
			return err
		}
		at := filepath.Join(root, g.name)
		if err = os.MkdirAll(at, 0o755); err == nil && filepath.Base(root) == "cpuset" {
			err = inherit(root, at)
		}
		if err == nil {
			err = move(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leave moves this process back, and its children out of the way: a cgroup of version 2 with children cannot have
// processes.
func (g *group) leave() error {
	var all error
	for root, path := range g.before {
		all = errors.Join(all, move(filepath.Join(root, path)))
		if root != cgroupsDir {
			continue
		}
		at := filepath.Join(root, g.name)
		init := filepath.Join(at, "init")
		all = errors.Join(all, os.MkdirAll(init, 0o755))
		text, err := os.ReadFile(filepath.Join(at, "cgroup.procs"))
		all = errors.Join(all, err)
		for pid := range strings.FieldsSeq(string(text)) {
			all = errors.Join(all, os.WriteFile(filepath.Join(init, "cgroup.procs"), []byte(pid), 0o644))
		}
	}
	return all
}

// passOn enables all controllers for children of the root of version 2.
func (g *group) passOn() error {
	has, err := os.ReadFile(filepath.Join(cgroupsDir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	passes, err := os.ReadFile(filepath.Join(cgroupsDir, "cgroup.subtree_control"))
	for c := range strings.FieldsSeq(string(has)) {
		if err != nil || slices.Contains(strings.Fields(string(passes)), c) {
			continue
		}
		if err = control("+" + c); err == nil {
			g.enabled = append(g.enabled, c)
		}
	}
	return err
}

func control(word string) error {
	return os.WriteFile(filepath.Join(cgroupsDir, "cgroup.subtree_control"), []byte(word), 0o644)
}

// remove removes the cgroup with all below it, once the kernel has ended its processes.
func (g *group) remove() error {
	list, err := roots()
	for _, root := range list {
		err = errors.Join(err, removeTree(filepath.Join(root, g.name)))
	}
	for _, c := range g.enabled {
		err = errors.Join(err, control("-"+c))
	}
	return err
}

func removeTree(at string) error {
	var dirs []string
	err := filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	slices.Reverse(dirs)
	for _, dir := range dirs {
		for range 100 {
			if err = unix.Rmdir(dir); !errors.Is(err, unix.EBUSY) {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
	}
	return nil
}

// ownCgroup returns the cgroup of this process in a hierarchy.
func ownCgroup(root string) (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		names := strings.Split(strings.TrimPrefix(fields[1], "name="), ",")
		if root == cgroupsDir && fields[1] == "" || slices.Contains(names, firstController(root)) {
			return fields[2], nil
		}
	}
	return "", fmt.Errorf("/proc/self/cgroup has no line for %s", root)
}

// firstController returns a controller of a directory such as cpu,cpuacct.
func firstController(root string) string {
	name, _, _ := strings.Cut(filepath.Base(root), ",")
	return name
}

// inherit sets the values that a cpuset cgroup needs before a process can join.
func inherit(root, at string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(at, name), value, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// move moves this process into a cgroup.
func move(at string) error {
	return os.WriteFile(filepath.Join(at, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644)
}
