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

// The lock is asked for again after a pause that grows between these two.
const (
	pauseMin = 5 * time.Millisecond
	pauseMax = 50 * time.Millisecond
)

// Patience is how long a lock is waited for without a word.
const Patience = time.Second

// File is the file of a lock.
type File struct {
	Path string
	// In does something with the file from a directory above it; nil opens that of Path. Only podctl changes it.
	In func(path string, work func(root *os.Root, name string) error) error
	// Keeps reports whether Unlock keeps the file, as long as what is locked exists. With nil, Unlock removes the file.
	Keeps func() (bool, error)
	// Command is the command line of who takes the lock, for those who wait; empty for that of
	// this process.
	Command []string
}

// Lock is held by one process at a time. It goes with the process: a dead one never blocks.
//
// It is made of two locks on one file. The lock itself is flock(2), so that
// flock(1) can hold it too. In front of it is a gate, an open file description
// lock on the first byte: who waits for the lock stands in the gate, and who has
// just given the lock back has to queue there as well. So a process that locks
// again and again cannot starve one that waits, say to delete the pod.
type Lock struct {
	file *os.File
	of   File
}

// in does something with the file from a directory above it.
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

// lstat describes what has the path now.
func (f *File) lstat() (info fs.FileInfo, err error) {
	err = f.in(func(root *os.Root, name string) (err error) {
		info, err = root.Lstat(name)
		return err
	})
	return info, err
}

// attempt is an attempt to get a lock that is not free yet.
type attempt struct {
	of File
	// file is open while the gate is held, or the lock was lost to a removal.
	file  *os.File
	gated bool
}

// Take waits for the lock until the context ends, and returns a *LockedError then. The lock is
// taken if it is free, even when the context has ended already. tell is called once, with who
// holds the lock, when it takes longer than Patience.
func Take(ctx context.Context, of File, tell func(holder string)) (*Lock, error) {
	return (&attempt{of: of}).take(ctx, tell)
}

func (a *attempt) take(ctx context.Context, tell func(holder string)) (*Lock, error) {
	began, told := time.Now(), false
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		lock, err := a.try()
		if lock != nil || err != nil {
			return lock, errors.Join(err, a.end())
		}
		if !told && time.Since(began) > Patience {
			told = true
			tell(a.of.readHolder())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(a.lockedError(context.Cause(ctx)), a.end())
		case <-time.After(pause):
		}
	}
}

// try makes one attempt; nil without an error when somebody else is first.
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
		return nil, nil //nolint:nilnil // No lock and no error: it has to be asked for again.
	}
	if err := gate(a.file, unix.F_UNLCK); err != nil {
		return nil, fmt.Errorf("locking %s: %w", a.of.Path, err)
	}
	lock := &Lock{file: a.file, of: a.of}
	lock.writeHolder(a.of.Command)
	a.file = nil
	return lock, nil
}

// open refuses what can be locked and not be written: that would be found out only when
// all is done and the lock is given back.
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

// removed reports whether the file is not the one that others will open: it was
// removed, with the pod, while this process waited. The wait begins anew.
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

// Unlock frees the lock, and removes its file unless File.Keeps. It may be called once.
func (l *Lock) Unlock() error {
	keep, err := l.keeps()
	if err == nil && !keep {
		err = safefs.IgnoreMissing(l.of.in((*os.Root).Remove))
	}
	if err = errors.Join(err, l.file.Close()); err != nil {
		return fmt.Errorf("freeing the lock: %w", err)
	}
	return nil
}

func (l *Lock) keeps() (bool, error) {
	if l.of.Keeps == nil {
		return false, nil
	}
	return l.of.Keeps()
}
