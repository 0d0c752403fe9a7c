package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/podctl/podctl/runtime/safefs"
)

// ErrUnsafe says that the state directory cannot be trusted: somebody else could
// have put there what podctl would act on.
var ErrUnsafe = errors.New("the state directory cannot be trusted")

// ErrUnsafeLogs says the same of a log directory.
var ErrUnsafeLogs = errors.New("the log directory cannot be trusted")

// Prepare creates the state directory for its owner alone, and refuses one that
// somebody else could have put there.
func (l Layout) Prepare() error {
	if err := l.checkParents(); err != nil {
		return err
	}
	if _, err := os.Stat(l.Root); errors.Is(err, fs.ErrNotExist) {
		if err := makeDirs(l.Root, 0o755, 0o700); err != nil {
			return fmt.Errorf("creating the state directory: %w", err)
		}
	}
	return l.check()
}

// check refuses a state directory that another user owns or can write to. A
// missing one is fine: there is nothing to read in it.
func (l Layout) check() error {
	link, err := os.Lstat(l.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at the state directory: %w", err)
	}
	target, err := os.Stat(l.Root)
	if err != nil {
		return fmt.Errorf("looking at the state directory: %w", err)
	}
	if err := errors.Join(l.checkParents(), l.trusted().checkOwner(link)); err != nil {
		return err
	}
	if !target.IsDir() {
		return fmt.Errorf("the state directory %s is not a directory: remove it, or choose another with --state-dir", l.Root)
	}
	return l.trusted().check(target)
}

// checkParents refuses a state directory that another user could exchange for one of his
// own, also between one look and the next.
func (l Layout) checkParents() error {
	if err := safefs.CheckParents(l.Root); err != nil {
		return fmt.Errorf("%w: %w; choose another with --state-dir", ErrUnsafe, err)
	}
	return nil
}

// trusted is a directory on which nobody else may decide.
type trusted struct {
	path string
	// unsafe is the error for one that cannot be trusted, option how to choose another one and
	// mode the one that it should have.
	unsafe error
	option string
	mode   fs.FileMode
}

func (l Layout) trusted() trusted {
	return trusted{path: l.Root, unsafe: ErrUnsafe, option: "with --state-dir", mode: 0o700}
}

// checkLogs refuses a log directory that another user owns or can write to: the
// runtime would follow a link in it, as root.
func checkLogs(dir *safefs.Dir) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	return trusted{path: dir.Path(), unsafe: ErrUnsafeLogs, option: "--log-root", mode: logDirMode}.check(info)
}

func (t trusted) check(info fs.FileInfo) error {
	if err := t.checkOwner(info); err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: %s can be written by others; look at what lies in it, then run chmod %o %s", t.unsafe, t.path, t.mode, t.path)
	}
	return nil
}

// checkOwner accepts what the user or root owns: who can act as root needs no trap.
func (t trusted) checkOwner(info fs.FileInfo) error {
	if uid, foreign := safefs.Foreign(info); foreign {
		return fmt.Errorf("%w: %s belongs to user %d; remove it, or choose another %s", t.unsafe, t.path, uid, t.option)
	}
	return nil
}
