package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// The lock is asked for again after a pause that grows between these two.
const (
	lockPauseMin = 5 * time.Millisecond
	lockPauseMax = 50 * time.Millisecond
)

// LockPatience is how long a lock is waited for without a word.
const LockPatience = time.Second

// Lock is held by one process at a time, for one pod. It goes with the process:
// a dead one never blocks.
//
// It is made of two locks on one file. The lock itself is flock(2), so that
// flock(1) can hold it too. In front of it is a gate, an open file description
// lock on the first byte: who waits for the lock stands in the gate, and who has
// just given the lock back has to queue there as well. So a process that locks
// again and again cannot starve one that waits, say to delete the pod.
type Lock struct {
	file *os.File
	// dir is the directory of what is locked: as long as it is there, the lock's file is kept.
	// It is empty for a lock of podctl's own.
	dir string
}

// Lock waits for the pod's lock until the context ends, and returns a
// *LockedError then. The lock is taken if it is free, even when the context has
// ended already.
func (p Pod) Lock(ctx context.Context) (*Lock, error) {
	return p.LockTelling(ctx, func(string) {})
}

// LockTelling is Lock, and tells once who holds the lock when it takes longer than
// LockPatience.
func (p Pod) LockTelling(ctx context.Context, tell func(holder string)) (*Lock, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	lock, err := p.layout.locks().take(ctx, &waiting{path: p.lockFile(), dir: p.Dir()}, tell)
	if lock != nil {
		// What a killed writer left harms nobody, and the next one tries again.
		_ = errors.Join(p.Checkpoint().removeUnfinished(), removeFile(p.History().unfinished()))
	}
	return lock, err
}

// lockFile is the file that a process holds while it works on the pod.
func (p Pod) lockFile() string { return p.layout.locks().file(string(p.uid)) }

// LockPorts takes the ports of the node for this process alone: from the look at who has
// which until it is written down who takes some. Who has a pod's lock may ask for it, and not
// the other way round.
func (l Layout) LockPorts(ctx context.Context) (*Lock, error) {
	return l.locks().takeOwn(ctx, lockPorts, "the table of the node's ports")
}

// LockIDs takes the ranges of user ids for this process alone. Who has a pod's lock may ask
// for it, and not the other way round.
func (l Layout) LockIDs(ctx context.Context) (*Lock, error) {
	return l.locks().takeOwn(ctx, lockIDs, "the table of user ids")
}

// locks is the directory with the files of all locks.
type locks struct{ layout Layout }

func (l Layout) locks() locks { return locks{l} }

func (s locks) dir() string { return filepath.Join(s.layout.Root, "locks") }

// file is the file of a lock by its name: that of a pod is its uid.
func (s locks) file(name string) string { return filepath.Join(s.dir(), name+".lock") }

func (s locks) make() error {
	if err := s.layout.Prepare(); err != nil {
		return err
	}
	if err := makeDirs(s.dir(), 0o700, 0o700); err != nil {
		return fmt.Errorf("creating the lock: %w", err)
	}
	return nil
}

// take makes the directory and waits for a lock.
func (s locks) take(ctx context.Context, wait *waiting, tell func(holder string)) (*Lock, error) {
	if err := s.make(); err != nil {
		return nil, err
	}
	wait.command = s.layout.Command
	return wait.take(ctx, tell)
}

// takeOwn takes a lock that is no pod's.
func (s locks) takeOwn(ctx context.Context, name, what string) (*Lock, error) {
	lock, err := s.take(ctx, &waiting{path: s.file(name)}, func(string) {})
	if locked := (*LockedError)(nil); errors.As(err, &locked) {
		locked.Pod = what
	}
	return lock, err
}

// waiting is an attempt to get a lock that is not free yet.
type waiting struct {
	path, dir string
	// command is what others are told who holds the lock.
	command []string
	// file is open while the gate is held, or the lock was lost to a removal.
	file  *os.File
	gated bool
}

// take waits for the lock.
func (w *waiting) take(ctx context.Context, tell func(holder string)) (*Lock, error) {
	began, told := time.Now(), false
	for pause := lockPauseMin; ; pause = min(2*pause, lockPauseMax) {
		lock, err := w.try()
		if lock != nil || err != nil {
			return lock, errors.Join(err, w.end())
		}
		if !told && time.Since(began) > LockPatience {
			told = true
			tell(readHolder(w.path))
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(w.lockedError(context.Cause(ctx)), w.end())
		case <-time.After(pause):
		}
	}
}

// try makes one attempt; nil without an error when somebody else is first.
func (w *waiting) try() (*Lock, error) {
	if w.file == nil {
		f, err := openLock(w.path)
		if err != nil {
			return nil, fmt.Errorf("opening the lock: %w", err)
		}
		w.file = f
	}
	free, err := w.enterGate()
	if free {
		free, err = taken(unix.Flock(int(w.file.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", w.path, err)
	}
	if !free || w.removed() {
		return nil, nil //nolint:nilnil // No lock and no error: it has to be asked for again.
	}
	if err := gate(w.file, unix.F_UNLCK); err != nil {
		return nil, fmt.Errorf("locking %s: %w", w.path, err)
	}
	lock := &Lock{file: w.file, dir: w.dir}
	lock.writeHolder(w.command)
	w.file = nil
	return lock, nil
}

// openLock refuses what can be locked and not be written: that would be found out only when
// all is done and the lock is given back.
func openLock(path string) (f *os.File, err error) {
	err = inDirOf(path, func(dir *safefs.Dir, name string) (err error) {
		f, err = dir.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		return err
	})
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file: remove it", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (w *waiting) enterGate() (bool, error) {
	if w.gated {
		return true, nil
	}
	free, err := taken(gate(w.file, unix.F_WRLCK))
	w.gated = free
	return free, err
}

// removed reports whether the file is not the one that others will open: it was
// removed, with the pod, while this process waited. The wait begins anew.
func (w *waiting) removed() bool {
	opened, err := w.file.Stat()
	if err == nil {
		if named, err := os.Lstat(w.path); err == nil && os.SameFile(opened, named) {
			return false
		}
	}
	_ = w.end()
	return true
}

func (w *waiting) end() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file, w.gated = nil, false
	return err
}

func (w *waiting) lockedError(cause error) error {
	return &LockedError{Path: w.path, Holder: readHolder(w.path), Err: cause}
}

// gate sets or frees the lock on the first byte of the file.
func gate(f *os.File, how int16) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: how, Len: 1})
}

// taken turns the outcome of an attempt to lock into whether it succeeded.
func taken(err error) (bool, error) {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// Unlock frees the lock, and removes its file when nothing lies on disk for the pod:
// it is gone, or was never there. It may be called once.
func (l *Lock) Unlock() error {
	present, err := l.dir != "", error(nil)
	if present {
		present, err = exists(l.dir)
	}
	switch {
	case err != nil:
	case present:
		err = l.file.Truncate(0)
	default:
		err = removeFile(l.file.Name())
	}
	if err = errors.Join(err, l.file.Close()); err != nil {
		return fmt.Errorf("freeing the lock: %w", err)
	}
	return nil
}
