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

	"k8s.io/apimachinery/pkg/types"
)

// HasJournal tells that podctl remembers the pod, even where the journal cannot
// be read.
func (p Pod) HasJournal() (bool, error) {
	if err := errors.Join(p.check(), p.layout.check()); err != nil {
		return false, err
	}
	return exists(p.JournalFile())
}

// HasDir tells that something lies on disk for the pod.
func (p Pod) HasDir() (bool, error) {
	if err := errors.Join(p.check(), p.layout.check()); err != nil {
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
	entries, err := os.ReadDir(l.pods())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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
	entries, err := os.ReadDir(l.deletedLogs())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the logs of deleted pods: %w", err)
	}
	var logs []DeletedLog
	for _, entry := range entries {
		if d, ok := parseDeletedLog(entry.Name()); ok && entry.IsDir() {
			d.Path = filepath.Join(l.deletedLogs(), entry.Name())
			logs = append(logs, d)
		}
	}
	return logs, nil
}

// parseDeletedLog reads NAMESPACE_NAME_UID.TIME.
func parseDeletedLog(name string) (DeletedLog, bool) {
	cut := len(name) - len(asideFormat) - 1
	if cut < 0 || name[cut] != '.' {
		return DeletedLog{}, false
	}
	at, err := time.Parse(asideFormat, name[cut+1:])
	parts := strings.Split(name[:cut], "_")
	if err != nil || len(parts) != 3 {
		return DeletedLog{}, false
	}
	return DeletedLog{Namespace: parts[0], Name: parts[1], UID: types.UID(parts[2]), At: at}, true
}

// RemoveDeletedLog removes the logs of a deleted pod. The caller holds the pod's
// lock.
func (l Layout) RemoveDeletedLog(d DeletedLog) error {
	if filepath.Dir(d.Path) != l.deletedLogs() {
		return fmt.Errorf("removing the logs of a deleted pod: %s does not lie in %s", d.Path, l.deletedLogs())
	}
	if err := os.RemoveAll(d.Path); err != nil {
		return fmt.Errorf("removing the logs of a deleted pod: %w", err)
	}
	return nil
}

// RemoveAllLogs removes all logs of a pod and the links to them. The caller holds
// the pod's lock.
func (p Pod) RemoveAllLogs(namespace, name string) error {
	if err := p.check(); err != nil {
		return err
	}
	err := p.removeAllLinks(namespace, name)
	if err == nil {
		err = os.RemoveAll(p.LogDir(namespace, name))
	}
	if err != nil {
		return fmt.Errorf("removing the pod's logs: %w", err)
	}
	return nil
}

// LogsSize is how much the logs of one attempt of a container take on disk.
func (p Pod) LogsSize(namespace, name, container string, attempt uint32) int64 {
	dir := p.containerLogDir(namespace, name, container)
	files, err := readLogDir(dir)
	if err != nil {
		return 0
	}
	var sum int64
	for _, f := range files {
		if f.attempt == attempt {
			sum += Size(filepath.Join(dir, f.name))
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
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += stat.Blocks * blockSize
			}
		}
		return nil
	})
	return sum
}

// blockSize is the unit of stat(2), whatever the file system's own is.
const blockSize = 512
