package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// Open opens a file for reading. It returns an *UntrustedError where somebody else decides
// what is in it, or where it is no regular file, and an *fs.PathError as os.Open does.
func Open(path string) (*os.File, error) {
	p, err := resolve(path)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if p.kind() != unix.S_IFREG {
		return nil, &UntrustedError{Path: path, Reason: "is not a regular file"}
	}
	if err = p.checkOwner(path); err == nil {
		err = p.checkMode(path, 0o022)
	}
	if err != nil {
		return nil, err
	}
	return p.open(path, unix.O_RDONLY)
}

func (p *place) open(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(p.path(), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// CheckParents refuses a path on whose way another user could put another directory: below
// one that he owns, or that everybody may write to without the sticky bit. What is checked
// under such a name need not be what is used a moment later. Parts that are missing are
// passed over.
func CheckParents(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	ways := []string{path}
	if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
		ways = append(ways, target)
	}
	for _, way := range ways {
		for dir := filepath.Dir(way); ; dir = filepath.Dir(dir) {
			if err := checkParent(dir); err != nil {
				return err
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return nil
}

func checkParent(dir string) error {
	p, err := resolve(dir)
	if IsMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.checkOwner(dir); err != nil {
		return err
	}
	if p.stat.Mode&unix.S_ISVTX != 0 {
		return nil
	}
	return p.checkMode(dir, 0o002)
}

// CheckPrivate refuses a file that another user owns, or that others can read.
func CheckPrivate(path string) error {
	p, err := resolve(path)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.checkOwner(path); err != nil {
		return err
	}
	if p.stat.Mode&0o077 == 0 {
		return nil
	}
	return &UntrustedError{Path: path, Reason: "can be read by others, who can then find out what it protects: run chmod 600 " + path}
}

// CheckDir refuses a directory that another user owns, can write to or could exchange.
func CheckDir(path string) error {
	if err := CheckParents(path); err != nil {
		return err
	}
	p, err := resolve(path)
	if err != nil {
		return err
	}
	defer p.close()
	if p.kind() != unix.S_IFDIR {
		return &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
	}
	if err := p.checkOwner(path); err != nil {
		return err
	}
	return p.checkMode(path, 0o022)
}

// IsSocket reports whether there is a unix socket at a path. It returns an *UntrustedError
// for one that another user made: he would answer in the runtime's place.
func IsSocket(path string) (bool, error) {
	p, err := resolve(path)
	if untrusted := (*UntrustedError)(nil); errors.As(err, &untrusted) {
		return false, err
	}
	if err != nil {
		// There is none, or it cannot be reached.
		return false, nil
	}
	defer p.close()
	if p.kind() != unix.S_IFSOCK {
		return false, nil
	}
	return true, p.checkOwner(path)
}

// File is a file that is being written. It has mode 0600, and takes its name when Commit is
// called. What is at the path and is no regular file, a device or a pipe, is written to at
// once.
type File struct {
	*os.File
	// pending is nil for a device or a pipe.
	pending *renameio.PendingFile
	root    *os.Root
}

// Create begins to write a file. It returns an *UntrustedError where a link on the way
// belongs to another user, or a pipe at the path does. The caller calls Close, and
// Commit before it when all is written.
func Create(path string) (*File, error) {
	p, err := resolve(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return createBeside(path)
	case err != nil:
		return nil, err
	}
	defer p.close()
	switch {
	case p.kind() == unix.S_IFDIR:
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.EISDIR}
	case p.viaProc:
		// What standard output leads to is the caller's choice, whoever owns it.
	case p.kind() == unix.S_IFREG:
		return createBeside(path)
	default:
		if err = p.checkOwner(path); err != nil {
			return nil, err
		}
	}
	f, err := p.open(path, unix.O_WRONLY)
	if err != nil {
		return nil, err
	}
	return &File{File: f}, nil
}

// createBeside makes the file under another name in the directory of its path.
func createBeside(path string) (*File, error) {
	dir, name := filepath.Split(path)
	if name == "" {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.EISDIR}
	}
	p, err := resolve(dir)
	if err != nil {
		return nil, err
	}
	defer p.close()
	root, err := os.OpenRoot(p.path())
	if err != nil {
		return nil, named(path, err)
	}
	pending, err := renameio.NewPendingFile(name, renameio.WithRoot(root), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return nil, errors.Join(named(path, err), root.Close())
	}
	return &File{File: pending.File, pending: pending, root: root}, nil
}

// named gives an error the path that the caller knows in place of the one that was opened.
func named(path string, err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: path, Err: at.Err}
	}
	return err
}

// Commit puts the file in its place, as a whole.
func (f *File) Commit() error {
	if f.pending == nil {
		return nil
	}
	return f.pending.CloseAtomicallyReplace()
}

// Close removes a file that was not committed. After Commit it frees what was held.
func (f *File) Close() error {
	if f.pending == nil {
		return f.File.Close()
	}
	return errors.Join(f.pending.Cleanup(), f.root.Close())
}

// WriteFile replaces a file as a whole, as Create and Commit do.
func WriteFile(path string, text []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Commit()
	}
	return errors.Join(err, f.Close())
}
