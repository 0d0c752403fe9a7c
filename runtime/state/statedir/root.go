package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// Dir is a state directory. Path, and the paths of its files, may be absolute or relative to the working directory.
type Dir struct{ Path string }

// ErrUnsafe reports a state directory that cannot be trusted, because another user could have written its files.
var ErrUnsafe = errors.New("the state directory cannot be trusted")

// Prepare creates the state directory with access for its owner only. It refuses a directory that another user could
// have put there.
func (d Dir) Prepare() error {
	_, err := d.root()
	if errors.Is(err, fs.ErrNotExist) {
		err = d.create()
	}
	return err
}

// create creates the state directory.
func (d Dir) create() error {
	path, err := filepath.Abs(d.Path)
	if err == nil {
		err = d.unsafe(safefs.CheckParents(path))
	}
	if err != nil {
		return err
	}
	made, err := safefs.MakeAll(path, 0o755, 0o700)
	if err == nil {
		err = made.Close()
	}
	if err != nil {
		return fmt.Errorf("creating the state directory: %w", err)
	}
	_, err = d.root()
	return err
}

// Check refuses a state directory that another user owns or can write to. A missing one is valid, because there is
// nothing to read.
func (d Dir) Check() error {
	_, err := d.root()
	return safefs.IgnoreMissing(err)
}

// checkedRoot is a state directory whose parents were checked. Checking once is enough: only root and the user of this
// process can change the parents, so no other user can invalidate the check.
type checkedRoot struct {
	root *os.Root
	info fs.FileInfo
}

// checkedRoots holds the checked roots by path. They stay open until the process ends.
var checkedRoots sync.Map //nolint:gochecknoglobals // What is true for all of the process is found out once.

// root returns the open state directory, from which podctl reaches everything below. It refuses a directory that
// another user owns, can write to or could replace. If there is none, the error is fs.ErrNotExist. The caller must not
// close the result.
func (d Dir) root() (*os.Root, error) {
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return nil, fmt.Errorf("looking at the state directory: %w", err)
	}
	if known, ok := checkedRoots.Load(path); ok {
		known := known.(checkedRoot) // nothing else is stored
		if info, statErr := os.Stat(path); statErr == nil && os.SameFile(known.info, info) {
			return known.root, d.trusted().check(info)
		}
	}
	// A root that was replaced is closed when it is no longer used.
	checked, err := d.openRoot(path)
	if err != nil {
		return nil, err
	}
	checkedRoots.Store(path, checked)
	return checked.root, nil
}

// openRoot opens the state directory and checks it and its parents.
func (d Dir) openRoot(path string) (checkedRoot, error) {
	dir, err := safefs.OpenTrustedDir(path)
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return checkedRoot{}, fmt.Errorf(
			"the state directory %s is not a directory: remove it, or choose another with --state-dir", d.Path,
		)
	case errors.As(err, new(*safefs.UntrustedError)):
		return checkedRoot{}, d.unsafe(err)
	case err != nil:
		return checkedRoot{}, fmt.Errorf("looking at the state directory: %w", err)
	}
	info, err := dir.Stat()
	if err == nil {
		err = d.trusted().check(info)
	}
	var root *os.Root
	if err == nil {
		root, err = dir.Root()
	}
	return checkedRoot{root, info}, errors.Join(err, dir.Close())
}

// unsafe wraps the reason why the state directory cannot be trusted.
func (d Dir) unsafe(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w; choose another with --state-dir", ErrUnsafe, err)
	}
	return nil
}

// trusted is a directory that only root or the user may change.
type trusted struct {
	path string
	// unsafe is the error for an untrusted directory. option is how to choose another one, and mode is the mode it
	// should have.
	unsafe error
	option string
	mode   fs.FileMode
}

func (d Dir) trusted() trusted {
	return trusted{path: d.Path, unsafe: ErrUnsafe, option: "with --state-dir", mode: 0o700}
}

// check accepts a directory that the user or root owns and that no other user can write to. podctl trusts root.
func (t trusted) check(info fs.FileInfo) error {
	if uid, foreign := safefs.Foreign(info); foreign {
		return fmt.Errorf("%w: %s belongs to user %d; remove it, or choose another %s", t.unsafe, t.path, uid, t.option)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: %s can be written by others; check its content, then run chmod %o %s",
			t.unsafe, t.path, t.mode, t.path)
	}
	return nil
}
