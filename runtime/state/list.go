package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// Pods lists the pods with files on disk.
type Pods struct{ layout Layout }

// present returns the pods with an entry in the state directory for which counts returns true, in order. It ignores
// names that no pod can have. A missing state directory has no pods.
func (p Pods) present(counts func(fs.DirEntry) bool) ([]Pod, error) {
	entries, err := p.layout.dir().Entries(p.layout.pods())
	var pods []Pod
	for _, entry := range entries {
		if pod := p.layout.Pod(types.UID(entry.Name())); pod.check() == nil && counts(entry) {
			pods = append(pods, pod)
		}
	}
	return pods, err
}

// known returns the pods with a checkpoint, in order.
func (p Pods) known() ([]Pod, error) {
	pods, err := p.present(func(fs.DirEntry) bool { return true })
	if err != nil {
		return nil, fmt.Errorf("reading the state directory: %w", err)
	}
	return slices.DeleteFunc(pods, func(pod Pod) bool {
		there, err := pod.Checkpoint().Exists()
		return err != nil || !there
	}), nil
}

// CheckpointUIDs returns the uids of the pods with a checkpoint, in order.
func (p Pods) CheckpointUIDs() ([]types.UID, error) {
	pods, err := p.known()
	uids := make([]types.UID, 0, len(pods))
	for _, pod := range pods {
		uids = append(uids, pod.uid)
	}
	return uids, err
}

// ChangedAt returns when the directory of a pod was last created or removed, or zero if that never happened.
func (p Pods) ChangedAt() time.Time {
	if info, err := p.layout.dir().Lstat(p.layout.pods()); err == nil {
		return info.ModTime()
	}
	return time.Time{}
}

// Entry is one pod with a checkpoint.
type Entry struct {
	UID types.UID
	// Checkpoint is nil if Err is set, which is the reason why it cannot be read.
	Checkpoint *Checkpoint
	Err        error
}

// Checkpoints reads every checkpoint, in the order of the uids. For one that cannot be read, the entry has an error.
func (p Pods) Checkpoints() ([]Entry, error) {
	pods, err := p.known()
	if err != nil {
		return nil, err
	}
	key := p.layout.DigestKey().known()
	entries := make([]Entry, 0, len(pods))
	for _, pod := range pods {
		j, err := pod.Checkpoint().read(key)
		entries = append(entries, Entry{UID: pod.uid, Checkpoint: j, Err: err})
	}
	return entries, nil
}

// Leftovers returns the pods with a directory but without a checkpoint, in order.
func (p Pods) Leftovers() ([]types.UID, error) {
	pods, err := p.present(fs.DirEntry.IsDir)
	if err != nil {
		return nil, fmt.Errorf("reading the state directory: %w", err)
	}
	var uids []types.UID
	for _, pod := range pods {
		if known, err := pod.Checkpoint().Exists(); err != nil {
			return nil, err
		} else if !known {
			uids = append(uids, pod.uid)
		}
	}
	return uids, nil
}

// Health describes the state directory. It is determined without writing.
type Health struct {
	Exists bool
	Mode   fs.FileMode
	// Unusable is the reason why podctl does not use the directory.
	Unusable error
	// Writable is set if podctl can write to the directory or create it.
	Writable bool
	// Checkpoints is the number of checkpoints. Unreadable has an error for each one that cannot be read. Open lists
	// the files that other users can read.
	Checkpoints int
	Unreadable  []error
	Open        []string
	NewestWrite time.Time
}

// Health checks the state directory and every checkpoint in it.
func (l Layout) Health() Health {
	entries, err := l.Pods().Checkpoints()
	h := Health{Unusable: err, Checkpoints: len(entries), Writable: unix.Access(l.Present(), unix.W_OK) == nil}
	if info, err := os.Stat(l.Root); err == nil {
		h.Exists, h.Mode = true, info.Mode().Perm()
	}
	for _, entry := range entries {
		if entry.Err != nil {
			h.Unreadable = append(h.Unreadable, entry.Err)
		}
		h.check(l, l.Pod(entry.UID).Checkpoint().Path())
	}
	return h
}

func (h *Health) check(l Layout, checkpoint string) {
	info, err := l.dir().Lstat(checkpoint)
	if err != nil {
		return
	}
	if info.Mode().Perm()&0o077 != 0 {
		h.Open = append(h.Open, checkpoint)
	}
	if info.ModTime().After(h.NewestWrite) {
		h.NewestWrite = info.ModTime()
	}
}

// Present returns the state directory or its nearest existing parent.
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
