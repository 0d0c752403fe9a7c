package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// HistoryStore reads and writes the history of a pod.
type HistoryStore struct{ pod Pod }

// Path returns the file of the history.
func (s HistoryStore) Path() string {
	return filepath.Join(s.pod.layout.Histories().dir(), string(s.pod.uid)+".json")
}

// unfinished is the temporary file for writing a history.
func (s HistoryStore) unfinished() string {
	return filepath.Join(s.pod.layout.Histories().dir(), "."+string(s.pod.uid))
}

// Read reads the pod's history. A missing or damaged history, or one of a newer podctl, is returned as an empty one,
// because nothing depends on it.
func (s HistoryStore) Read() (*History, error) {
	if err := s.pod.check(); err != nil {
		return nil, err
	}
	h := &History{}
	text, err := s.pod.layout.dir().Read(s.Path(), historyMax)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrDamaged):
		return h, nil
	case err != nil:
		return nil, fmt.Errorf("reading the pod's events: %w", err)
	}
	return decodeHistory(text), nil
}

func decodeHistory(text []byte) *History {
	h := &History{}
	if err := model.DecodeDocument(text, h); err != nil || h.Version != historyVersion {
		return &History{}
	}
	return h
}

// Remove removes the pod's history. The caller holds the pod's lock.
func (s HistoryStore) Remove() error {
	return safefs.Wrapf(removeFile(s.pod, s.Path()), "removing the pod's events")
}

// Write replaces the pod's history. Only the first write of the file waits for the disk: a crash of the machine may
// lose later ones. The caller holds the pod's lock.
func (s HistoryStore) Write(h *History) (err error) {
	h.Version = historyVersion
	text, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("writing the pod's events: %w", err)
	}
	if err = s.pod.check(); err == nil {
		err = s.pod.layout.dir().MkdirAll(s.pod.layout.Histories().dir(), podDirMode)
	}
	if err == nil {
		err = s.pod.layout.dir().Replace(s.unfinished(), s.Path(), text, 0o600, s.sync())
	}
	return safefs.Wrapf(err, "writing the pod's events")
}

// sync returns how the next write reaches the disk. After a crash of the machine, ext4 may show a new file as an empty
// one. It keeps the old or the new content of a file that a write has replaced.
func (s HistoryStore) sync() statedir.Sync {
	if there, err := s.pod.layout.dir().Exists(s.Path()); err == nil && there {
		return statedir.Volatile
	}
	return statedir.Complete
}

// Histories holds the histories of all pods, including deleted ones.
type Histories struct{ layout Layout }

func (s Histories) dir() string { return filepath.Join(s.layout.Root, "events") }

// All reads all histories, including those of deleted pods. If a history cannot be decoded, only its uid is set. If a
// file cannot be read, All returns the error together with the other histories. It ignores files with other names,
// which do not belong to podctl.
func (s Histories) All() ([]*History, error) {
	return s.read(func(Pod, fs.DirEntry) bool { return true })
}

// Before reads the histories of deleted pods without an event since a time. A zero time means all.
func (s Histories) Before(before time.Time) ([]*History, error) {
	return s.read(func(pod Pod, entry fs.DirEntry) bool {
		if known, err := pod.Checkpoint().Exists(); err != nil || known {
			return false
		}
		info, err := entry.Info()
		return before.IsZero() || (err == nil && info.ModTime().Before(before))
	})
}

func (s Histories) read(wanted func(Pod, fs.DirEntry) bool) ([]*History, error) {
	entries, err := s.layout.dir().Entries(s.dir())
	if err != nil {
		return nil, fmt.Errorf("reading events: %w", err)
	}
	var all []*History
	var errs []error
	for _, entry := range entries {
		uid, ok := strings.CutSuffix(entry.Name(), ".json")
		pod := s.layout.Pod(types.UID(uid))
		if !ok || pod.check() != nil || !wanted(pod, entry) {
			continue
		}
		h, err := pod.History().Read()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", entry.Name(), err))
			continue
		}
		// The file belongs to this pod by its name, regardless of its contents.
		h.Pod.UID = types.UID(uid)
		all = append(all, h)
	}
	return all, errors.Join(errs...)
}
