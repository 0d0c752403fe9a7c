package state

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// RemoveLogs removes the logs of one attempt of a container, rotated ones
// included, and its link.
func (p Pod) RemoveLogs(namespace, name, container, containerID string, attempt uint32) error {
	_, err := p.removeLogs(namespace, name, container, func(n uint32) bool { return n == attempt })
	link := ""
	if err == nil {
		link, err = p.logLink(namespace, name, container, containerID)
	}
	if err == nil && link != "" {
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
	removed, err := p.removeLogs(namespace, name, container, func(n uint32) bool { return n < attempt })
	if err == nil && len(removed) > 0 {
		err = p.removeLinks(func(target string) bool { return removed[target] })
	}
	if err != nil {
		return fmt.Errorf("removing old logs of container %s: %w", container, err)
	}
	return nil
}

// removeLogs removes the logs of some attempts of a container, and returns their paths. What
// is no directory in the place of one has no logs in it.
func (p Pod) removeLogs(namespace, name, container string, goes func(attempt uint32) bool) (map[string]bool, error) {
	path, err := p.containerLogDir(namespace, name, container)
	if err != nil {
		return nil, err
	}
	dir, err := p.OpenLogDir(namespace, name, container)
	if safefs.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	files, err := readLogDir(dir)
	removed := map[string]bool{}
	for _, f := range files {
		if err == nil && goes(f.attempt) {
			err, removed[filepath.Join(path, f.name)] = dir.Remove(f.name), true
		}
	}
	return removed, err
}

// asideFormat is the time at the end of a directory of logs that were set aside.
const asideFormat = "20060102-150405.000000"

// deletedLogs holds the logs of pods that were deleted. It lies in LogRoot, so
// that moving logs there is one rename on any disk, which a crash can neither
// halve nor a full disk stop; and below a directory of its own, one level deeper
// than the patterns of log shippers (/var/log/pods/*/*/*.log) reach, so that
// nothing is shipped twice. A kubelet that takes over the machine removes it, as
// it removes the logs of every pod it does not know.
func (l Layout) deletedLogs() string { return filepath.Join(l.LogRoot, deletedName) }

// The names in LogRoot of what was set aside. Of a pod whose log directory has a name that
// leaves no room for the time, the logs of that time lie in a directory of its name in
// longName.
const (
	deletedName = ".deleted"
	longName    = ".long"
)

// nameMax is the length of the longest name that a directory can have, in bytes.
const nameMax = 255

// SetAsideLogs moves the logs of a pod that was deleted out of the way of the
// next pod of that name and uid, which then starts at attempt zero, and removes
// the links to them. They can still be read in .deleted: the newest ones of
// each pod are kept, so that deleting and applying in a loop does not fill the
// disk, until `podctl prune` removes those too.
func (p Pod) SetAsideLogs(namespace, name string, now time.Time) error {
	err := p.removeAllLinks(namespace, name)
	if err == nil {
		err = p.inLogRoot(namespace, name, func(root *safefs.Dir, base string) error { return setAside(root, base, now) })
	}
	if err != nil {
		return fmt.Errorf("setting the pod's logs aside: %w", err)
	}
	return nil
}

// inLogRoot does something with the name of the pod's log directory, if it has one. What is
// no directory is removed: a container that ships logs may have put it there.
func (p Pod) inLogRoot(namespace, name string, work func(root *safefs.Dir, base string) error) error {
	base, err := p.logName(namespace, name)
	if err != nil {
		return err
	}
	root, err := openDir(p.layout.LogRoot)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	defer root.Close() //nolint:errcheck // A handle on a directory.
	info, err := root.Lstat(base)
	switch {
	case safefs.Missing(err):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return root.Remove(base)
	}
	return work(root, base)
}

// setAside moves the logs of one pod to those of deleted pods, in the place of what was set
// aside of it before.
func setAside(root *safefs.Dir, base string, now time.Time) error {
	dir, err := makePlain(root, deletedName)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	at := now.UTC().Format(asideFormat)
	if len(base)+1+len(at) > nameMax {
		return setAsideLong(root, dir, base, at)
	}
	entries, err := dir.Entries()
	for _, entry := range entries {
		if text, ok := strings.CutPrefix(entry.Name(), base+"."); ok && isAsideTime(text) {
			err = errors.Join(err, dir.RemoveAll(entry.Name()))
		}
	}
	if err != nil {
		return err
	}
	return root.Rename(base, dir, base+"."+at)
}

// setAsideLong does so where the name has no room for the time.
func setAsideLong(root, deleted *safefs.Dir, base, at string) error {
	long, err := makePlain(deleted, longName)
	if err != nil {
		return err
	}
	defer long.Close() //nolint:errcheck // A handle on a directory.
	if err = long.RemoveAll(base); err != nil {
		return err
	}
	dir, err := long.Make(base, logRootMode)
	if err != nil {
		return err
	}
	return errors.Join(root.Rename(base, dir, at), dir.Close())
}

// makePlain makes a directory of podctl's own, in the place of what is no directory: a
// container that ships logs may have put a link there.
func makePlain(dir *safefs.Dir, name string) (*safefs.Dir, error) {
	sub, err := dir.Make(name, logRootMode)
	if !errors.Is(err, unix.ENOTDIR) {
		return sub, err
	}
	if err = dir.Remove(name); err != nil {
		return nil, err
	}
	return dir.Make(name, logRootMode)
}

func isAsideTime(text string) bool {
	_, err := time.Parse(asideFormat, text)
	return err == nil
}
