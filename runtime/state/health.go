package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Health is how the state directory is, found out without writing to it.
type Health struct {
	Exists bool
	Mode   fs.FileMode
	// Unusable says why podctl does not use it.
	Unusable error
	// Writable tells that podctl can write to it, or make it.
	Writable bool
	// Journals counts the pods, Unreadable has an error for each journal that cannot
	// be read, Open the journals that others can read.
	Journals    int
	Unreadable  []error
	Open        []string
	NewestWrite time.Time
}

// Health looks at the state directory and at every journal in it.
func (l Layout) Health() Health {
	entries, err := l.Journals()
	h := Health{Unusable: err, Journals: len(entries), Writable: unix.Access(l.Present(), unix.W_OK) == nil}
	if info, err := os.Stat(l.Root); err == nil {
		h.Exists, h.Mode = true, info.Mode().Perm()
	}
	for _, entry := range entries {
		if entry.Err != nil {
			h.Unreadable = append(h.Unreadable, entry.Err)
		}
		h.lookAt(l.Pod(entry.UID).JournalFile())
	}
	return h
}

func (h *Health) lookAt(journal string) {
	info, err := os.Lstat(journal)
	if err != nil {
		return
	}
	if info.Mode().Perm()&0o077 != 0 {
		h.Open = append(h.Open, journal)
	}
	if info.ModTime().After(h.NewestWrite) {
		h.NewestWrite = info.ModTime()
	}
}

// Present is the state directory, or what there is of the way to it.
func (l Layout) Present() string {
	dir := l.Root
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}
