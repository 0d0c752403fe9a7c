package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// podDirMode is the mode of a pod's directory and of those in it (kubelet:
// makePodDataDirs).
const podDirMode = 0o750

// MakeDir creates a directory below the pod's own, or the pod's own. Missing
// directories above it get mode 0750, the last one gets perm, whatever the
// umask. One that is there already keeps its mode.
func (p Pod) MakeDir(path string, perm fs.FileMode) error {
	if err := errors.Join(p.check(), p.layout.Prepare()); err != nil {
		return err
	}
	if path != p.Dir() && !strings.HasPrefix(path, p.Dir()+string(filepath.Separator)) {
		return fmt.Errorf("creating a directory: %s does not lie in the pod's directory %s", path, p.Dir())
	}
	if err := makeDirs(path, podDirMode, perm); err != nil {
		return fmt.Errorf("creating a directory of the pod: %w", err)
	}
	return nil
}

// MakeClaims creates the directory in which the claims of a namespace lie.
func (p Pod) MakeClaims(namespace string) error {
	if err := errors.Join(p.check(), p.layout.Prepare()); err != nil {
		return err
	}
	if err := makeDirs(filepath.Dir(p.ClaimDir(namespace, "x")), 0o711, 0o711); err != nil {
		return fmt.Errorf("creating the directory of claims: %w", err)
	}
	return nil
}

// makeDirs creates a directory and those that are missing above it, with exactly
// the modes given.
func makeDirs(path string, above, perm fs.FileMode) error {
	missing, err := missingDirs(path)
	if err != nil {
		return err
	}
	for i, dir := range missing {
		mode := above
		if i == len(missing)-1 {
			mode = perm
		}
		if err := makeOne(dir, mode); err != nil {
			return err
		}
	}
	return nil
}

// missingDirs lists the directories of a path that do not exist, the outermost
// one first.
func missingDirs(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, nil
	case err == nil:
		return nil, &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	missing, err := missingDirs(filepath.Dir(path))
	return append(missing, path), err
}

// makeOne creates one directory. Another process may have been faster.
func makeOne(path string, perm fs.FileMode) error {
	err := os.Mkdir(path, perm)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, perm)
}

// syncDir makes the names in a directory durable: a file that was renamed is
// only safe once its directory is.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
