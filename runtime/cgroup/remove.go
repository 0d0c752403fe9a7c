package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/cgroups/systemd"
	"golang.org/x/sys/unix"
)

// How long to wait for processes that continue to run after their pod was stopped. Exiting processes do not count.
const (
	removeTimeout = 500 * time.Millisecond
	removePause   = 10 * time.Millisecond
)

// remove removes a cgroup and those below it if they have no processes. It waits for exiting processes until the
// context ends: on a busy machine the kernel and the runtime may take long to finish their exit. If kill is not nil,
// remove calls it before each wait.
func (t *tree) remove(ctx context.Context, name string, kill func() error) error {
	for settled := time.Now(); ; {
		err := t.tryRemove(name)
		busy := (*BusyError)(nil)
		isBusy := errors.As(err, &busy)
		if !isBusy && !errors.Is(err, unix.EBUSY) {
			return err
		}
		if isBusy && kill != nil {
			if failed := kill(); failed != nil {
				return errors.Join(err, failed)
			}
		}
		if isBusy && slices.ContainsFunc(busy.PIDs, isExiting) {
			settled = time.Now()
		}
		if time.Since(settled) > removeTimeout || !pause(ctx) {
			return err
		}
	}
}

// pause waits until the next attempt. It returns false if the context has ended.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(removePause):
		return true
	}
}

func (t *tree) tryRemove(name string) error {
	pids, err := t.processes(name)
	if err != nil {
		return fmt.Errorf("removing cgroup %s: %w", name, err)
	}
	if len(pids) > 0 {
		return &BusyError{Path: name, PIDs: pids}
	}
	if err := stopSlice(name); err != nil {
		return fmt.Errorf("removing cgroup %s: %w", name, err)
	}
	for _, h := range t.hierarchies {
		if err := h.removeTree(name); err != nil {
			return fmt.Errorf("removing cgroup %s: %w", name, err)
		}
	}
	return nil
}

// processes returns the processes in a cgroup and those below it, in order.
func (t *tree) processes(name string) ([]int, error) {
	var pids []int
	for _, h := range t.hierarchies {
		found, err := processesIn(os.DirFS(h.at(name)), ".")
		if err != nil {
			return nil, err
		}
		pids = append(pids, found...)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// processesIn returns the processes in a cgroup's directory and those below it. A missing cgroup has none.
func processesIn(root fs.FS, dir string) ([]int, error) {
	text, err := fs.ReadFile(root, path.Join(dir, "cgroup.procs"))
	if err != nil && !isGone(err) {
		return nil, err
	}
	var pids []int
	for word := range strings.FieldsSeq(string(text)) {
		if pid, notNumber := strconv.Atoi(word); notNumber == nil {
			pids = append(pids, pid)
		}
	}
	entries, err := fs.ReadDir(root, dir)
	if err != nil && !isGone(err) {
		return nil, err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		below, err := processesIn(root, path.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		pids = append(pids, below...)
	}
	return pids, nil
}

// isGone reports whether a cgroup was removed, possibly while it was read.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }

// stopSlice makes systemd forget a slice, because systemd would otherwise recreate it. It must be called only if no
// process runs in it, because systemd would stop it.
func stopSlice(name string) error {
	if !isSlice(name) || !systemd.IsRunningSystemd() {
		return nil
	}
	m, err := manager.New(config(name, &cgroups.Resources{}))
	if err != nil {
		return err
	}
	return m.Destroy()
}

// removeTree removes a cgroup from its leaves up. The kernel refuses to remove one with a process, so a process that
// joined meanwhile is not lost.
func (h hierarchy) removeTree(name string) error {
	children, err := h.children(name)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err = h.removeTree(child); err != nil {
			return err
		}
	}
	// Only rmdir works: the files of a cgroup cannot be removed, and vanish with it.
	err = unix.Rmdir(h.at(name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, statErr := os.Lstat(h.at(name)); errors.Is(statErr, fs.ErrNotExist) {
		return nil // A read-only file system refuses before it checks for existence.
	}
	return &fs.PathError{Op: "rmdir", Path: h.at(name), Err: err}
}
