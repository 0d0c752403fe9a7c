package cgroup

import (
	"bytes"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Occupants are the processes of one container, as its cgroups show them.
type Occupants struct {
	dirs []string
	// watched has a descriptor of each process that was seen in them.
	watched map[int]int
	// blind is set where something is there of which nothing is known.
	blind bool
}

// Occupants looks for the processes of a container below the cgroups that its pod may
// have. It is false where its first process is not among them: then nothing can be said.
// Runtimes give the cgroup of a container a name of their own that holds its id; that of
// another process which they name after it (CRI-O: conmon) counts as well.
func (Machine) Occupants(pods []string, containerID string, first int) (Processes, bool) {
	t, err := findTree()
	if err != nil {
		return nil, false
	}
	return t.occupants(pods, containerID, first)
}

func (t *tree) occupants(pods []string, containerID string, first int) (*Occupants, bool) {
	o := &Occupants{watched: map[int]int{}}
	for _, h := range t.hierarchies {
		o.dirs = append(o.dirs, h.containers(pods, containerID)...)
	}
	o.look()
	if _, seen := o.watched[first]; !seen {
		o.Close()
		return nil, false
	}
	return o, true
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

// Left reports whether a process is left, and true where this cannot be known. A process counts
// until it has given back its memory and its files: its descriptor shows that, and with version
// 2 the cgroup itself. The list of the cgroup's processes is empty earlier.
func (o *Occupants) Left() bool {
	listed := o.look()
	return o.blind || listed || o.alive() || slices.ContainsFunc(o.dirs, populated)
}

// Close gives back what was needed to watch.
func (o *Occupants) Close() {
	for _, fd := range o.watched {
		unix.Close(fd) //nolint:errcheck // it was only looked at
	}
	clear(o.watched)
}

// look watches what is listed and has not been seen before. It reports whether anything is
// listed.
func (o *Occupants) look() bool {
	var pids []int
	for _, dir := range o.dirs {
		found, err := processesIn(dir)
		o.blind = o.blind || err != nil
		pids = append(pids, found...)
	}
	for _, pid := range pids {
		if _, known := o.watched[pid]; known {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case err == nil:
			o.watched[pid] = fd
		case !errors.Is(err, unix.ESRCH): // It has gone meanwhile.
			o.blind = true
		}
	}
	return len(pids) > 0
}

// alive reports whether a process that is watched has not ended.
func (o *Occupants) alive() bool {
	fds := make([]unix.PollFd, 0, len(o.watched))
	for _, fd := range o.watched {
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	ended, err := unix.Poll(fds, 0)
	return err != nil || ended < len(fds)
}

// populated reports whether a cgroup of version 2 says that it, or one below it, has
// processes. It says so until the last thread is gone.
func populated(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	return err == nil && bytes.Contains(text, []byte("populated 1"))
}
