package safefs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Remove removes a file or a link. A missing one is not an error.
func (d *Dir) Remove(name string) error {
	return IgnoreMissing(d.do("remove", name, func(fd int) error { return unix.Unlinkat(fd, name, 0) }))
}

// RemoveDir removes an empty directory. A missing one is not an error.
func (d *Dir) RemoveDir(name string) error {
	return IgnoreMissing(d.do("remove", name, func(fd int) error { return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) }))
}

// RemoveAll removes a name with its contents. It follows no links and enters no mounts. It enters a directory only
// after rmdir reported that it is not empty, and a mount point reports EBUSY. It opens few directories at a time,
// regardless of the depth of the tree.
func (d *Dir) RemoveAll(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	r := &remover{top: d.fd(), pending: []string{name}}
	for len(r.pending) > 0 {
		next := r.pending[len(r.pending)-1]
		r.pending = r.pending[:len(r.pending)-1]
		if err := r.remove(r.top, next, 0); err != nil {
			return fmt.Errorf("removing %s: %w", d.Join(name), err)
		}
	}
	return nil
}

// maxDepth limits how deep RemoveAll descends. It first moves deeper directories up.
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
	// A container can create millions of names.
	for {
		names, err := dir.Readdirnames(namesMax)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, entry := range names {
			if err = r.remove(fd, entry, depth+1); err != nil {
				return err
			}
		}
		// A file system may skip names after others were removed.
		if _, err = dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// namesMax is how many names of a directory are read at a time.
const namesMax = 1024

// moveUp moves a directory that is too deep next to the tree. It is removed after the tree.
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
