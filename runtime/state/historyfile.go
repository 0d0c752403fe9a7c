package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/safefs"
)

// HistoryStore is where what happened to a pod is kept.
type HistoryStore struct{ pod Pod }

// Path is the file of the history.
func (s HistoryStore) Path() string {
	return filepath.Join(s.pod.layout.historyDir(), string(s.pod.uid)+".json")
}

// unfinished is a history that is being written.
func (s HistoryStore) unfinished() string {
	return filepath.Join(s.pod.layout.historyDir(), "."+string(s.pod.uid))
}

// Read reads what happened to the pod. One that is missing, damaged or of a
// newer podctl is empty: nothing depends on it.
func (s HistoryStore) Read() (*History, error) {
	if err := firstError(s.pod.check(), s.pod.layout.check()); err != nil {
		return nil, err
	}
	h := &History{}
	text, err := readRegular(s.Path(), historyMax)
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
	err := firstError(s.pod.check(), s.pod.layout.check())
	if err == nil {
		err = safefs.RemoveFile(s.Path())
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
	if err = firstError(s.pod.check(), s.pod.layout.Prepare()); err == nil {
		err = s.replace(text)
	}
	if err != nil {
		return fmt.Errorf("writing the pod's events: %w", err)
	}
	return nil
}

// replace puts a new history in the place of the one before.
func (s HistoryStore) replace(text []byte) error {
	dir, err := makeAll(s.pod.layout.historyDir(), podDirMode, podDirMode)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	return replaceBy(dir, filepath.Base(s.unfinished()), filepath.Base(s.Path()), text, func(*os.File) error { return nil })
}

// replaceBy writes a file under another name, and lets it take the place of the one before. What a
// killed process left under the other name is removed. Written is called before the file is closed.
func replaceBy(dir *safefs.Dir, unfinished, name string, text []byte, written func(*os.File) error) error {
	if err := dir.Remove(unfinished); err != nil {
		return err
	}
	file, err := dir.Create(unfinished, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(text); err == nil {
		err = written(file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return dir.Replace(unfinished, name)
}
