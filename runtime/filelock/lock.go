package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// The pause between attempts grows between these limits.
const (
	pauseMin = 5 * time.Millisecond
	pauseMax = 50 * time.Millisecond
)

// Patience is how long Take waits before it reports the holder.
const Patience = time.Second

// File is the file of a lock.
type File struct {
	Path string
	// In calls work with the file, relative to a directory above it. If nil, the directory of Path is used. Only podctl
	// may change the file.
	In func(path string, work func(root *os.Root, name string) error) error
	// Keeps reports whether Unlock keeps the file, as long as the locked object exists. If nil, Unlock removes the
	// file.
	Keeps func() (bool, error)
	// Command is the holder's command line for waiting processes. Empty means that of this process.
	Command []string
}

// Lock is held by one process at a time. It ends with the process, so a dead process never blocks.
//
// It consists of two locks on one file. The lock itself is flock(2), so that flock(1) can hold it too. Before it is a
// gate, an open file description lock on the first byte. A waiting process holds the gate, and a process that has just
// released the lock must wait for the gate too. So a process that locks repeatedly cannot starve one that waits, for
// example to delete the pod.
type Lock struct {
	file *os.File
	of   File
}

// in calls work with the file, relative to a directory above it.
func (f *File) in(work func(root *os.Root, name string) error) error {
	if f.In != nil {
		return f.In(f.Path, work)
	}
	root, err := safefs.OpenRoot(filepath.Dir(f.Path))
	if err != nil {
		return err
	}
	return errors.Join(work(root, filepath.Base(f.Path)), root.Close())
}

// lstat describes the file that the path leads to now.
func (f *File) lstat() (info fs.FileInfo, err error) {
	err = f.in(func(root *os.Root, name string) (err error) {
		info, err = root.Lstat(name)
		return err
	})
	return info, err
}

// attempt is an attempt to get a lock.
type attempt struct {
	of File
	// file is open from the first try until the lock is taken, or until its file was removed. gated is set
	// while the gate is held.
	file  *os.File
	gated bool
}

// Take waits for the lock until the context ends, and then returns a *LockedError. It takes a free lock even if the
// context has already ended. If it waits longer than Patience, it calls tell once with the holder.
func Take(ctx context.Context, of File, notify func(holder string)) (*Lock, error) {
	return (&attempt{of: of}).take(ctx, notify)
}

func (a *attempt) take(ctx context.Context, notify func(holder string)) (*Lock, error) {
	began, notified := time.Now(), false
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		lock, err := a.try()
		if lock != nil || err != nil {
			return lock, errors.Join(err, a.end())
		}
		if !notified && time.Since(began) > Patience {
			notified = true
			notify(a.of.readHolder())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(a.lockedError(context.Cause(ctx)), a.end())
		case <-time.After(pause):
		}
	}
}

// try makes one attempt. It returns nil without an error if another process is first.
func (a *attempt) try() (*Lock, error) {
	if a.file == nil {
		f, err := a.of.open()
		if err != nil {
			return nil, fmt.Errorf("opening the lock: %w", err)
		}
		a.file = f
	}
	free, err := a.enterGate()
	if free {
		free, err = taken(unix.Flock(int(a.file.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", a.of.Path, err)
	}
	if !free || a.removed() {
		return nil, nil // No lock and no error: it has to be asked for again.
	}
	if err := gate(a.file, unix.F_UNLCK); err != nil {
		return nil, fmt.Errorf("locking %s: %w", a.of.Path, err)
	}
	lock := &Lock{file: a.file, of: a.of}
	lock.writeHolder(a.of.Command)
	a.file = nil
	return lock, nil
}

// open refuses a file that can be locked but not written, because that would be noticed only at the end, when the lock
// is released.
func (f *File) open() (file *os.File, err error) {
	err = f.in(func(root *os.Root, name string) (err error) {
		file, err = root.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, 0o600)
		return err
	})
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file: remove it", f.Path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (a *attempt) enterGate() (bool, error) {
	if a.gated {
		return true, nil
	}
	free, err := taken(gate(a.file, unix.F_WRLCK))
	a.gated = free
	return free, err
}

// removed reports whether the file was removed, with the pod, during the wait, so that others would open another file.
// The wait then starts again.
func (a *attempt) removed() bool {
	opened, err := a.file.Stat()
	if err == nil {
		if named, err := a.of.lstat(); err == nil && os.SameFile(opened, named) {
			return false
		}
	}
	_ = a.end()
	return true
}

func (a *attempt) end() error {
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	a.file, a.gated = nil, false
	return err
}

func (a *attempt) lockedError(cause error) error {
	return &LockedError{Path: a.of.Path, Holder: a.of.readHolder(), Err: cause}
}

// gate sets or releases the lock on the first byte of the file.
func gate(f *os.File, how int16) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: how, Len: 1})
}

// taken converts the result of an attempt to lock.
func taken(err error) (bool, error) {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// Unlock releases the lock, and removes its file unless File.Keeps. It must be called only once.
func (l *Lock) Unlock() error {
	keep, err := l.keeps()
	if err == nil && !keep {
		err = safefs.IgnoreMissing(l.of.in((*os.Root).Remove))
	}
	err = errors.Join(err, l.file.Close())
	return safefs.Wrapf(err, "releasing the lock")
}

func (l *Lock) keeps() (bool, error) {
	if l.of.Keeps == nil {
		return false, nil
	}
	return l.of.Keeps()
}
