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

// Occupants are the processes of one container, according to its cgroups.
type Occupants struct {
	dirs []string
	// watched maps each known process to its pidfd.
	watched map[int]int
	// blind is set if a process exists whose state is unknown.
	blind bool
}

// Occupants finds the processes of a container below the possible cgroups of its pod. It returns false if the
// container's first process is not among them, because the result would be unreliable. Runtimes give a container's
// cgroup a name that contains its id. Other processes whose cgroup is named after the container (CRI-O: conmon) count
// as well.
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

// containers returns the directories of the cgroups below some pods whose names contain an id.
func (h hierarchy) containers(pods []string, id string) []string {
	var dirs []string
	for _, pod := range pods {
		children, _ := h.children(pod) // A pod that cannot be read has no result.
		for _, child := range children {
			if strings.Contains(path.Base(child), id) {
				dirs = append(dirs, h.at(child))
			}
		}
	}
	return dirs
}

// Left reports whether a process is left, or true if that is unknown. A process counts until it has released its memory
// and files: its pidfd shows that, and with version 2 the cgroup itself. It vanishes earlier from the cgroup's list of
// processes.
func (o *Occupants) Left() bool {
	listed := o.look()
	return o.blind || listed || o.alive() || slices.ContainsFunc(o.dirs, populated)
}

// Close closes the watched processes.
func (o *Occupants) Close() {
	for _, fd := range o.watched {
		unix.Close(fd) //nolint:errcheck // it was only read
	}
	clear(o.watched)
}

// look starts to watch new processes in the lists. It reports whether any process is listed.
func (o *Occupants) look() bool {
	var pids []int
	for _, dir := range o.dirs {
		found, err := processesIn(os.DirFS(dir), ".")
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
		case !errors.Is(err, unix.ESRCH): // It has ended meanwhile.
			o.blind = true
		}
	}
	return len(pids) > 0
}

// alive reports whether a watched process has not ended.
func (o *Occupants) alive() bool {
	fds := make([]unix.PollFd, 0, len(o.watched))
	for _, fd := range o.watched {
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	ended, err := unix.Poll(fds, 0)
	return err != nil || ended < len(fds)
}

// populated reports whether a cgroup of version 2, or one below it, has processes. This is true until the last thread
// is gone.
func populated(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	return err == nil && bytes.Contains(text, []byte("populated 1"))
}
