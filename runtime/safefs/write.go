package safefs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

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
	root, err := os.OpenRoot(procPath(p.fd))
	if err != nil {
		return nil, named(path, err)
	}
	pending, err := renameio.NewPendingFile(name, renameio.WithRoot(root), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return nil, errors.Join(named(path, err), root.Close())
	}
	return &File{File: pending.File, pending: pending, root: root}, nil
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
