package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// removeTree removes an entry of a directory with all that is in it. It follows
// no links, and enters no mounts: a directory is entered only after rmdir has
// said that it is not empty, and of one on which something is mounted it says
// EBUSY. However deep a container has nested its directories, few are open at a
// time.
func removeTree(dir, name string) error {
	top, err := os.Open(dir)
	if err != nil {
		return ignoreMissing(err)
	}
	defer top.Close() //nolint:errcheck // A handle on a directory.
	r := &remover{top: int(top.Fd()), pending: []string{name}}
	for len(r.pending) > 0 {
		next := r.pending[len(r.pending)-1]
		r.pending = r.pending[:len(r.pending)-1]
		if err := r.remove(r.top, next, 0); err != nil {
			return fmt.Errorf("removing %s/%s: %w", dir, name, err)
		}
	}
	return nil
}

// maxDepth is how deep a tree is descended into; what is deeper is moved up
// first.
const maxDepth = 100

// remover removes trees in one directory.
type remover struct {
	top     int
	pending []string
	moved   int
}

// remove removes one name in an open directory.
func (r *remover) remove(parent int, name string, depth int) error {
	err := unix.Unlinkat(parent, name, 0)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.EISDIR):
		return &fs.PathError{Op: "unlink", Path: name, Err: err}
	}
	err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.ENOTEMPTY):
		return &fs.PathError{Op: "rmdir", Path: name, Err: err}
	case depth >= maxDepth:
		return r.moveUp(parent, name)
	}
	if err := r.empty(parent, name, depth); err != nil {
		return err
	}
	if err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "rmdir", Path: name, Err: err}
	}
	return nil
}

// empty removes everything in a directory.
func (r *remover) empty(parent int, name string, depth int) error {
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, entry := range names {
		if err := r.remove(fd, entry, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// moveUp moves a directory that lies too deep next to the tree, to be removed
// after it.
func (r *remover) moveUp(parent int, name string) error {
	for {
		to := fmt.Sprintf(".removing-%d", r.moved)
		r.moved++
		err := unix.Renameat2(parent, name, r.top, to, unix.RENAME_NOREPLACE)
		switch {
		case err == nil:
			r.pending = append(r.pending, to)
			return nil
		case !errors.Is(err, unix.EEXIST):
			return &fs.PathError{Op: "rename", Path: name, Err: err}
		}
	}
}
