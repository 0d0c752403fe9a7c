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
	"github.com/podctl/podctl/runtime/state/statedir"
)

// HistoryStore is where what happened to a pod is kept.
type HistoryStore struct{ pod Pod }

// Path is the file of the history.
func (s HistoryStore) Path() string {
	return filepath.Join(s.pod.layout.Histories().dir(), string(s.pod.uid)+".json")
}

// unfinished is a history that is being written.
func (s HistoryStore) unfinished() string {
	return filepath.Join(s.pod.layout.Histories().dir(), "."+string(s.pod.uid))
}

// Read reads what happened to the pod. One that is missing, damaged or of a
// newer podctl is empty: nothing depends on it.
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

// Remove forgets what happened to the pod. The caller holds the pod's lock.
func (s HistoryStore) Remove() error {
	err := s.pod.check()
	if err == nil {
		err = s.pod.layout.dir().Remove(s.Path())
	}
	if err != nil {
		return fmt.Errorf("removing the pod's events: %w", err)
	}
	return nil
}

// Write replaces the pod's history. It is not forced onto the disk: a crash of
// the machine may lose it. The caller holds the pod's lock.
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
		err = s.pod.layout.dir().Replace(s.unfinished(), s.Path(), text, 0o600, statedir.Volatile)
	}
	if err != nil {
		return fmt.Errorf("writing the pod's events: %w", err)
	}
	return nil
}

// Histories are the events of all pods, also of those that are gone.
type Histories struct{ layout Layout }

func (s Histories) dir() string { return filepath.Join(s.layout.Root, "events") }

// All reads all histories there are, of pods that are gone too. Of one that cannot
// be read the uid is known. One whose reading fails hides no other: its error is returned
// beside them. What lies there under names that no pod has is not podctl's.
func (s Histories) All() ([]*History, error) {
	return s.read(func(Pod, fs.DirEntry) bool { return true })
}

// Before reads those of pods that are gone, and to which nothing happened since a time;
// zero means whenever.
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
		// The file is the pod's by its name, whatever is in it.
		h.Pod.UID = types.UID(uid)
		all = append(all, h)
	}
	return all, errors.Join(errs...)
}
