package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Occupied looks for the processes of a container below the cgroups that its pod may have,
// and returns a function that tells whether any is left; nil where none is found now, for
// then nothing can be said. Runtimes give the cgroup of a container a name of their own that
// holds its id; that of another process which they name after it (CRI-O: conmon) counts as
// well.
func Occupied(pods []string, containerID string) func() bool {
	t, err := findTree()
	if err != nil {
		return nil
	}
	return t.occupied(pods, containerID)
}

func (t *tree) occupied(pods []string, containerID string) func() bool {
	var dirs []string
	for _, h := range t.hierarchies {
		dirs = append(dirs, h.containers(pods, containerID)...)
	}
	left := func() bool { return slices.ContainsFunc(dirs, hasProcess) }
	if !left() {
		return nil
	}
	return left
}

// containers are the directories of the cgroups below some pods' whose names hold an id.
func (h hierarchy) containers(pods []string, id string) []string {
	var dirs []string
	for _, pod := range pods {
		children, _ := h.children(pod) // Of what cannot be read nothing is said.
		for _, child := range children {
			if strings.Contains(path.Base(child), id) {
				dirs = append(dirs, h.at(child))
			}
		}
	}
	return dirs
}

// hasProcess tells that a process is in a cgroup or in one below it, or that this cannot be
// known. A cgroup that is gone has none.
func hasProcess(dir string) bool {
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return !isGone(err)
	}
	if len(procs) > 0 {
		return true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return !isGone(err)
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() && hasProcess(filepath.Join(dir, e.Name())) })
}

// isGone tells that a cgroup was removed, also while it was read.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }
