package safefs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// File is a handle on the directory itself, which cannot be read.
func (d *Dir) File() (*os.File, error) {
	again, err := d.again()
	if err != nil {
		return nil, err
	}
	return again.file, nil
}

// Chmod sets the mode of the directory itself.
func (d *Dir) Chmod(mode fs.FileMode) error { return chmod(d.file, mode) }

// Give gives the directory itself to a group, and adds bits to its mode.
func (d *Dir) Give(group int, bits fs.FileMode) error { return give(d.file, group, bits) }

// GiveFile gives what a name stands for to a group, and adds bits to its mode. Of a link the
// link itself is given.
func (d *Dir) GiveFile(name string, group int, bits fs.FileMode) error {
	file, err := d.Handle(name)
	if err != nil {
		return err
	}
	return errors.Join(give(file, group, bits), file.Close())
}

// give changes what was opened, whatever has its name by now.
func give(file *os.File, group int, bits fs.FileMode) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := unix.Fchownat(int(file.Fd()), "", -1, group, unix.AT_EMPTY_PATH); err != nil {
		return &fs.PathError{Op: "chown", Path: file.Name(), Err: err}
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	return chmod(file, info.Mode()|bits)
}

// chmod changes what a handle holds: the name of a descriptor leads to that and nothing else.
func chmod(file *os.File, mode fs.FileMode) error {
	if err := os.Chmod(ProcPath(file), mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: file.Name(), Err: Cause(err)}
	}
	return nil
}
