package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/safefs"
)

// HasJournal tells that podctl remembers the pod, even where the journal cannot
// be read.
func (p Pod) HasJournal() (bool, error) {
	if err := firstError(p.check(), p.layout.check()); err != nil {
		return false, err
	}
	return exists(p.JournalFile())
}

// HasDir tells that something lies on disk for the pod.
func (p Pod) HasDir() (bool, error) {
	if err := firstError(p.check(), p.layout.check()); err != nil {
		return false, err
	}
	return exists(p.Dir())
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at the state directory: %w", err)
	}
	return true, nil
}

// Leftovers lists the pods of which something lies on disk that no journal
// accounts for, in order.
func (l Layout) Leftovers() ([]types.UID, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	entries, err := entriesOf(l.pods())
	if err != nil {
		return nil, fmt.Errorf("reading the state directory: %w", err)
	}
	var uids []types.UID
	for _, entry := range entries {
		pod := l.Pod(types.UID(entry.Name()))
		if pod.check() != nil || !entry.IsDir() {
			continue
		}
		if known, err := pod.HasJournal(); err != nil {
			return nil, err
		} else if !known {
			uids = append(uids, pod.uid)
		}
	}
	return uids, nil
}

// DeletedLog is the directory with the logs of a pod that was deleted.
type DeletedLog struct {
	Path      string
	Namespace string
	Name      string
	UID       types.UID
	// At is when the pod was deleted.
	At time.Time
}

// ListDeletedLogs lists what SetAsideLogs has set aside, by name. What lies there
// under other names is not podctl's.
func (l Layout) ListDeletedLogs() ([]DeletedLog, error) {
	logs, err := l.listDeletedLogs()
	if err != nil {
		return nil, fmt.Errorf("reading the logs of deleted pods: %w", err)
	}
	return logs, nil
}

func (l Layout) listDeletedLogs() ([]DeletedLog, error) {
	root, err := openDir(l.LogRoot)
	if err != nil {
		return nil, safefs.IgnoreMissing(err)
	}
	defer root.Close() //nolint:errcheck // A handle on a directory.
	dir, err := root.Open(deletedName)
	if safefs.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	names, err := subdirs(dir)
	if err != nil {
		return nil, err
	}
	long, err := longLogs(dir)
	var logs []DeletedLog
	for _, name := range append(names, long...) {
		if d, ok := parseDeletedLog(name); ok {
			d.Path = filepath.Join(l.deletedLogs(), name)
			logs = append(logs, d)
		}
	}
	return logs, err
}

// longLogs lists the logs of pods whose names left no room for the time, as
// .long/NAMESPACE_NAME_UID/TIME.
func longLogs(deleted *safefs.Dir) ([]string, error) {
	bases, err := subdirsOf(deleted, longName)
	if err != nil || len(bases) == 0 {
		return nil, err
	}
	long, err := deleted.Open(longName)
	if err != nil {
		return nil, err
	}
	defer long.Close() //nolint:errcheck // A handle on a directory.
	var found []string
	for _, base := range bases {
		times, err := subdirsOf(long, base)
		if err != nil {
			return nil, err
		}
		for _, at := range times {
			found = append(found, filepath.Join(longName, base, at))
		}
	}
	return found, nil
}

// parseDeletedLog reads NAMESPACE_NAME_UID.TIME, and .long/NAMESPACE_NAME_UID/TIME.
func parseDeletedLog(name string) (DeletedLog, bool) {
	separator := byte('.')
	if rest, ok := strings.CutPrefix(name, longName+"/"); ok {
		name, separator = rest, '/'
	}
	cut := len(name) - len(asideFormat) - 1
	if cut < 0 || name[cut] != separator {
		return DeletedLog{}, false
	}
	at, err := time.Parse(asideFormat, name[cut+1:])
	parts := strings.Split(name[:cut], "_")
	if err != nil || len(parts) != 3 {
		return DeletedLog{}, false
	}
	d := DeletedLog{Namespace: parts[0], Name: parts[1], UID: types.UID(parts[2]), At: at}
	return d, firstError(checkName(kindNamespace, parts[0]), checkName(kindPod, parts[1]), checkName(kindUID, parts[2])) == nil
}

// RemoveDeletedLog removes the logs of a deleted pod. The caller holds the pod's
// lock.
func (l Layout) RemoveDeletedLog(d DeletedLog) error {
	name, ok := strings.CutPrefix(d.Path, l.deletedLogs()+"/")
	if ok {
		_, ok = parseDeletedLog(name)
	}
	if !ok {
		return fmt.Errorf("removing the logs of a deleted pod: %s is no such directory in %s", d.Path, l.deletedLogs())
	}
	if err := l.removeDeletedLog(strings.Split(name, "/")); err != nil {
		return fmt.Errorf("removing the logs of a deleted pod: %w", err)
	}
	return nil
}

func (l Layout) removeDeletedLog(names []string) error {
	root, err := openDir(l.LogRoot)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	defer root.Close() //nolint:errcheck // A handle on a directory.
	last := len(names) - 1
	dir, err := root.Sub(append([]string{deletedName}, names[:last]...)...)
	if safefs.Missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	if err = dir.RemoveAll(names[last]); err != nil || last == 0 {
		return err
	}
	return removeEmpty(root, names[1])
}

// removeEmpty removes the directory of a pod whose name is long, if nothing is left in it.
func removeEmpty(root *safefs.Dir, base string) error {
	long, err := root.Sub(deletedName, longName)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	err = long.RemoveDir(base)
	if errors.Is(err, unix.ENOTEMPTY) {
		err = nil
	}
	return errors.Join(err, long.Close())
}

// RemoveAllLogs removes all logs of a pod and the links to them. The caller holds
// the pod's lock.
func (p Pod) RemoveAllLogs(namespace, name string) error {
	err := p.removeAllLinks(namespace, name)
	if err == nil {
		err = p.inLogRoot(namespace, name, (*safefs.Dir).RemoveAll)
	}
	if err != nil {
		return fmt.Errorf("removing the pod's logs: %w", err)
	}
	return nil
}

// LogsSize is how much the logs of one attempt of a container take on disk.
func (p Pod) LogsSize(namespace, name, container string, attempt uint32) int64 {
	dir, err := p.OpenLogDir(namespace, name, container)
	if err != nil {
		return 0
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	files, _ := readLogDir(dir)
	var sum int64
	for _, f := range files {
		if info, err := dir.Lstat(f.name); err == nil && f.attempt == attempt {
			sum += blocks(info)
		}
	}
	return sum
}

// DirSize is how much the pod's directory takes on disk, without what is only
// bound into it.
func (p Pod) DirSize() int64 {
	entries, err := os.ReadDir(p.Dir())
	if err != nil {
		return 0
	}
	var sum int64
	for _, entry := range entries {
		if path := filepath.Join(p.Dir(), entry.Name()); path != p.SubPaths() {
			sum += Size(path)
		}
	}
	return sum
}

// Size is how much a file, or a directory with all that is in it, takes on disk.
// Links are not followed, and what cannot be read counts nothing.
func Size(path string) int64 {
	var sum int64
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is an estimate
		}
		if info, err := entry.Info(); err == nil {
			sum += blocks(info)
		}
		return nil
	})
	return sum
}

// blocks is how much one file takes on disk.
func blocks(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * blockSize
	}
	return 0
}

// blockSize is the unit of stat(2), whatever the file system's own is.
const blockSize = 512
