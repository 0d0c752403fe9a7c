package cgroup

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Destroy removes a pod's cgroup like Remove, and kills the processes in it (kubelet: podContainerManagerImpl.Destroy).
// It calls unused while it holds the cgroup open, before it kills. If unused returns an error, or another program than
// init and the runtime with this socket started a process of the cgroup, it kills nothing and the error has a
// *BusyError.
func (Machine) Destroy(ctx context.Context, name, socket string, unused func() error) error {
	t, err := findTree()
	if err != nil {
		return nil // Without cgroups there is nothing to remove.
	}
	if err = checkName(name); err != nil {
		return err
	}
	o := open(t, name)
	defer o.close()
	if err = t.remove(ctx, name, func() error { return o.kill(socket, unused) }); err != nil {
		return err
	}
	t.reweigh(path.Dir(name))
	return nil
}

// opened is a cgroup that is held open in each hierarchy. If the cgroup is removed and created again, an opened one has
// no processes.
type opened struct {
	unified bool
	roots   []*os.Root
}

// open opens the parts of a cgroup that exist.
func open(t *tree, name string) *opened {
	o := &opened{unified: t.unified}
	for _, h := range t.hierarchies {
		if root, err := os.OpenRoot(h.at(name)); err == nil {
			o.roots = append(o.roots, root)
		}
	}
	return o
}

func (o *opened) close() {
	for _, root := range o.roots {
		root.Close() //nolint:errcheck // it was only read
	}
}

// processes returns the processes in the cgroup and those below it.
func (o *opened) processes() (pids []int, err error) {
	for _, root := range o.roots {
		found, err := processesIn(root.FS(), ".")
		if err != nil {
			return nil, err
		}
		pids = append(pids, found...)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// kill sends SIGKILL to all processes unless another program needs them.
func (o *opened) kill(socket string, unused func() error) error {
	pids, err := o.processes()
	if err != nil || len(pids) == 0 || !slices.ContainsFunc(pids, isRunning) {
		return err
	}
	if err = unused(); err != nil {
		return err
	}
	if slices.Contains(pids, os.Getpid()) || slices.ContainsFunc(pids, func(pid int) bool {
		return isManaged(pid, pids, socket)
	}) {
		return errManaged
	}
	if o.unified && o.killAll() == nil {
		return nil
	}
	return o.killEach(pids)
}

var errManaged = errors.New("another program started them")

func isRunning(pid int) bool { return !isExiting(pid) }

// killAll lets the kernel kill all processes at once. It fails with version 1, and with Linux before 5.14.
func (o *opened) killAll() error {
	for _, root := range o.roots {
		f, err := root.OpenFile("cgroup.kill", os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString("1")
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// killEach kills some processes of the cgroup. An id may belong to another process by now, so it first opens the
// processes, and then kills those that are listed again.
func (o *opened) killEach(pids []int) (err error) {
	descriptors := map[int]int{}
	defer func() {
		for _, fd := range descriptors {
			unix.Close(fd) //nolint:errcheck // it was only read
		}
	}()
	for _, pid := range pids {
		fd, failed := unix.PidfdOpen(pid, 0)
		switch {
		case failed == nil:
			descriptors[pid] = fd
		case !errors.Is(failed, unix.ESRCH): // It has ended meanwhile.
			err = errors.Join(err, os.NewSyscallError("pidfd_open", failed))
		}
	}
	listed, failed := o.processes()
	if failed != nil {
		return failed
	}
	for _, pid := range listed {
		fd, known := descriptors[pid]
		if !known {
			continue // It is new, and the next attempt finds it.
		}
		if failed := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); failed != nil && !errors.Is(failed, unix.ESRCH) {
			err = errors.Join(err, os.NewSyscallError("pidfd_send_signal", failed))
		}
	}
	return err
}

// isManaged reports whether a process descends from a program outside of its cgroup that may need it: any but init,
// which adopts orphans, and the programs of the runtime, which have its socket in their command lines. Another runtime
// may have a container of the same pod, whose parent is its shim. An unknown parent may need it too.
func isManaged(pid int, group []int, socket string) bool {
	for range group {
		parent, err := parentOf(pid)
		if err != nil {
			return !isGone(err) && !errors.Is(err, unix.ESRCH)
		}
		if pid = parent; !slices.Contains(group, pid) {
			break
		}
	}
	if pid == 1 {
		return false
	}
	command, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cmdline"))
	return err != nil || socket == "" || !bytes.Contains(command, []byte(socket))
}

// parentOf returns the parent of a process.
func parentOf(pid int) (int, error) {
	status, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "PPid:"); found {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, fs.ErrInvalid
}
