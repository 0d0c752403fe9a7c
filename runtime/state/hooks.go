package state

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Hooks holds the marks of the pod's containers whose postStart hook is running. A mark is a file that is locked by the
// process that runs the hook. So it ends with the process, even if that is killed.
type Hooks struct{ pod Pod }

// Hooks returns the marks of the pod's running hooks.
func (p Pod) Hooks() Hooks { return Hooks{p} }

// hookPrefix precedes the container's id in the name of a mark.
const hookPrefix = "hook."

// Begin marks a container whose postStart hook is about to run, until end is called. The caller holds the pod's lock.
func (h Hooks) Begin(container string) (end func() error, err error) {
	dir, err := h.pod.Make(h.pod.Dir(), podDirMode)
	if err != nil {
		return nil, fmt.Errorf("marking the hook as running: %w", err)
	}
	name := hookPrefix + container
	file, err := dir.OpenFile(name, unix.O_RDWR|unix.O_CREAT, 0o600)
	if err == nil {
		if err = lockFile(file, unix.LOCK_EX); err != nil {
			err = errors.Join(err, file.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("marking the hook as running: %w", errors.Join(err, dir.Close()))
	}
	return func() error { return errors.Join(dir.Remove(name), file.Close(), dir.Close()) }, nil
}

// Running returns the ids of the containers whose postStart hook is running.
func (h Hooks) Running() map[string]bool {
	dir, err := h.pod.Open(h.pod.Dir())
	if err != nil {
		return nil
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	entries, err := dir.Entries()
	if err != nil {
		return nil
	}
	var running map[string]bool
	for _, entry := range entries {
		id, is := strings.CutPrefix(entry.Name(), hookPrefix)
		if !is {
			continue
		}
		file, _, err := dir.OpenRegular(entry.Name())
		if err != nil {
			continue
		}
		if errors.Is(lockFile(file, unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK) {
			if running == nil {
				running = map[string]bool{}
			}
			running[id] = true
		}
		_ = file.Close()
	}
	return running
}

// clear removes the marks of killed processes. The caller holds the pod's lock, so no hook is running.
func (h Hooks) clear() error { return removeFiles(h.pod, hookPrefix) }

// lockFile locks an open file with flock(2).
func lockFile(file *os.File, how int) error {
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(file.Fd()), how)
	}
	return err
}
