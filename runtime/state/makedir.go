package state

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
)

// podDirMode is the mode of a pod's directory and of those in it (kubelet:
// makePodDataDirs).
const podDirMode = 0o750

// MakeDir creates a directory below the pod's own, or the pod's own. Missing
// directories above it get mode 0750, the last one gets perm, whatever the
// umask. One that is there already keeps its mode.
func (p Pod) MakeDir(path string, perm fs.FileMode) error {
	dir, err := p.Make(path, perm)
	if err != nil {
		return err
	}
	return dir.Close()
}

// Make creates a directory as MakeDir does, and opens it.
func (p Pod) Make(path string, perm fs.FileMode) (*safefs.Dir, error) {
	if err := firstError(p.check(), p.layout.Prepare()); err != nil {
		return nil, err
	}
	names, err := p.below(path)
	var dir *safefs.Dir
	if err == nil {
		dir, err = makeBelow(p.layout.pods(), perm, names)
	}
	if err != nil {
		return nil, fmt.Errorf("creating a directory of the pod: %w", err)
	}
	return dir, nil
}

func makeBelow(pods string, perm fs.FileMode, names []string) (*safefs.Dir, error) {
	dir, err := makeAll(pods, podDirMode, podDirMode)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	return dir.MakeSub(podDirMode, perm, names...)
}

// Open opens a directory below the pod's own, or the pod's own. Links are not followed.
func (p Pod) Open(path string) (*safefs.Dir, error) {
	if err := firstError(p.check(), p.layout.check()); err != nil {
		return nil, err
	}
	names, err := p.below(path)
	if err != nil {
		return nil, err
	}
	dir, err := openDir(p.layout.pods())
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	return dir.Sub(names...)
}

// below are the elements that lead from the directory of all pods to one of this pod.
func (p Pod) below(path string) ([]string, error) {
	rest, ok := strings.CutPrefix(path+"/", p.Dir()+"/")
	if !ok {
		return nil, fmt.Errorf("%s does not lie in the pod's directory %s", path, p.Dir())
	}
	return append([]string{string(p.uid)}, strings.FieldsFunc(rest, func(r rune) bool { return r == '/' })...), nil
}

// makeAll opens a directory of podctl's own, and makes it and those above it if need be.
func makeAll(path string, above, perm fs.FileMode) (*safefs.Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return safefs.MakeAll(path, above, perm)
}

// makeDirs makes a directory of podctl's own, and those that are missing above it.
func makeDirs(path string, above, perm fs.FileMode) error {
	dir, err := makeAll(path, above, perm)
	if err != nil {
		return err
	}
	return dir.Close()
}

// openDir opens a directory of podctl's own.
func openDir(path string) (*safefs.Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return safefs.OpenDir(path)
}

// inDirOf does something with the name of a file in its directory.
func inDirOf(path string, work func(dir *safefs.Dir, name string) error) error {
	dir, err := openDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(work(dir, filepath.Base(path)), dir.Close())
}

// removeFile removes a file or link; one that is gone is no error.
func removeFile(path string) error {
	return safefs.IgnoreMissing(inDirOf(path, (*safefs.Dir).Remove))
}

// entriesOf lists a directory that may be missing.
func entriesOf(path string) ([]fs.DirEntry, error) {
	dir, err := openDir(path)
	if err != nil {
		return nil, safefs.IgnoreMissing(err)
	}
	entries, err := dir.Entries()
	return entries, errors.Join(err, dir.Close())
}
