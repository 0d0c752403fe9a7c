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

// Pods are the pods of which something is on disk.
type Pods struct{ layout Layout }

// present lists the pods of which an entry that counts lies in the state directory, in order. A
// state directory that does not exist has none. What lies there under names that no pod has is
// not podctl's.
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

// known lists the pods that have a checkpoint, in order.
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

// Remembered are the uids of the pods that have a checkpoint, in order.
func (p Pods) Remembered() ([]types.UID, error) {
	pods, err := p.known()
	uids := make([]types.UID, 0, len(pods))
	for _, pod := range pods {
		uids = append(uids, pod.uid)
	}
	return uids, err
}

// ChangedAt is when the directory of a pod was made or removed last; zero if there never was one.
func (p Pods) ChangedAt() time.Time {
	if info, err := p.layout.dir().Lstat(p.layout.pods()); err == nil {
		return info.ModTime()
	}
	return time.Time{}
}

// Entry is one pod that podctl remembers.
type Entry struct {
	UID types.UID
	// Checkpoint is nil when Err says why it cannot be read.
	Checkpoint *Checkpoint
	Err        error
}

// Checkpoints reads every checkpoint there is, in the order of the uids. One that
// cannot be read is an entry with an error and does not hide the others.
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

// Leftovers lists the pods of which something lies on disk that no checkpoint
// accounts for, in order.
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

// Health is how the state directory is, found out without writing to it.
type Health struct {
	Exists bool
	Mode   fs.FileMode
	// Unusable says why podctl does not use it.
	Unusable error
	// Writable is set if podctl can write to it, or make it.
	Writable bool
	// Checkpoints counts the pods, Unreadable has an error for each checkpoint that cannot
	// be read, Open the checkpoints that others can read.
	Checkpoints int
	Unreadable  []error
	Open        []string
	NewestWrite time.Time
}

// Health looks at the state directory and at every checkpoint in it.
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
		h.lookAt(l, l.Pod(entry.UID).Checkpoint().Path())
	}
	return h
}

func (h *Health) lookAt(l Layout, checkpoint string) {
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
