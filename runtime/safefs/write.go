package safefs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// File is a file that is being written. It has mode 0600, and gets its name with Commit. If the path is a device or a
// pipe, data is written to it at once.
type File struct {
	*os.File
	// pending is nil for a device or a pipe.
	pending *renameio.PendingFile
	root    *os.Root
}

// Create starts writing a file. It returns an *UntrustedError if a link on the way, or a pipe at the path, belongs to
// another user. The caller calls Commit after the last write, and then Close.
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
		// The caller chose the target of standard output, regardless of its owner.
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

// createBeside creates the file under a temporary name in the same directory.
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

// Commit renames the file to its path.
func (f *File) Commit() error {
	if f.pending == nil {
		return nil
	}
	return f.pending.CloseAtomicallyReplace()
}

// Close removes a file that was not committed. After Commit it only frees resources.
func (f *File) Close() error {
	if f.pending == nil {
		return f.File.Close()
	}
	return errors.Join(f.pending.Cleanup(), f.root.Close())
}

// WriteFile replaces a file as a whole, with Create and Commit.
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
