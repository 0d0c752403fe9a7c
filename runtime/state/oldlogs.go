package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// RemoveLogs removes the logs of one attempt of a container, rotated ones
// included, and its link.
func (p Pod) RemoveLogs(namespace, name, container, containerID string, attempt uint32) error {
	dir := p.containerLogDir(namespace, name, container)
	files, err := readLogDir(dir)
	for _, f := range files {
		if err == nil && f.attempt == attempt {
			err = removeFile(filepath.Join(dir, f.name))
		}
	}
	if link := p.logLink(namespace, name, container, containerID); err == nil && link != "" {
		err = removeFile(link)
	}
	if err != nil {
		return fmt.Errorf("removing the logs of container %s: %w", container, err)
	}
	return nil
}

// RemoveOlderLogs removes the logs of all attempts of a container before one, and the links
// that led to them.
func (p Pod) RemoveOlderLogs(namespace, name, container string, attempt uint32) error {
	dir := p.containerLogDir(namespace, name, container)
	files, err := readLogDir(dir)
	removed := map[string]bool{}
	for _, f := range files {
		if path := filepath.Join(dir, f.name); err == nil && f.attempt < attempt {
			err, removed[path] = removeFile(path), true
		}
	}
	if err == nil && len(removed) > 0 {
		err = p.removeLinks(func(target string) bool { return removed[target] })
	}
	if err != nil {
		return fmt.Errorf("removing old logs of container %s: %w", container, err)
	}
	return nil
}

// asideFormat is the time at the end of a directory of logs that were set aside.
const asideFormat = "20060102-150405.000000"

// deletedLogs holds the logs of pods that were deleted. It lies in LogRoot, so
// that moving logs there is one rename on any disk, which a crash can neither
// halve nor a full disk stop; and below a directory of its own, one level deeper
// than the patterns of log shippers (/var/log/pods/*/*/*.log) reach, so that
// nothing is shipped twice. A kubelet that takes over the machine removes it, as
// it removes the logs of every pod it does not know.
func (l Layout) deletedLogs() string { return filepath.Join(l.LogRoot, ".deleted") }

// SetAsideLogs moves the logs of a pod that was deleted out of the way of the
// next pod of that name and uid, which then starts at attempt zero, and removes
// the links to them. They can still be read in .deleted: the newest ones of
// each pod are kept, so that deleting and applying in a loop does not fill the
// disk, until `podctl prune` removes those too.
func (p Pod) SetAsideLogs(namespace, name string, now time.Time) error {
	if err := p.check(); err != nil {
		return err
	}
	if err := p.setAside(namespace, name, now); err != nil {
		return fmt.Errorf("setting the pod's logs aside: %w", err)
	}
	return nil
}

func (p Pod) setAside(namespace, name string, now time.Time) error {
	if err := p.removeAllLinks(namespace, name); err != nil {
		return err
	}
	dir := p.LogDir(namespace, name)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := makeDirs(p.layout.deletedLogs(), logDirMode, logRootMode); err != nil {
		return err
	}
	older, err := p.layout.deletedLogsOf(filepath.Base(dir))
	if err != nil {
		return err
	}
	for _, path := range older {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	to := filepath.Base(dir) + "." + now.UTC().Format(asideFormat)
	return os.Rename(dir, filepath.Join(p.layout.deletedLogs(), to))
}

// deletedLogsOf lists what was set aside of one pod before.
func (l Layout) deletedLogsOf(base string) ([]string, error) {
	entries, err := os.ReadDir(l.deletedLogs())
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range entries {
		if text, ok := strings.CutPrefix(entry.Name(), base+"."); ok {
			if _, err := time.Parse(asideFormat, text); err == nil {
				paths = append(paths, filepath.Join(l.deletedLogs(), entry.Name()))
			}
		}
	}
	return paths, nil
}
