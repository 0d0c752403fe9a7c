package statedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// ErrDamaged says that a file is none that podctl wrote, or is cut off.
var ErrDamaged = errors.New("it is damaged")

// privateMode is the mode of directories that only podctl uses.
const privateMode = 0o700

// below is a path below the state directory, relative to it.
func (d Dir) below(path string) (string, error) {
	relative, err := filepath.Rel(d.Path, path)
	if err != nil || !filepath.IsLocal(relative) {
		return "", fmt.Errorf("%s does not lie in the state directory %s", path, d.Path)
	}
	return relative, nil
}

// OpenDir opens a directory of the state directory, from the root that was checked.
func (d Dir) OpenDir(path string) (*safefs.Dir, error) {
	relative, err := d.below(path)
	if err != nil {
		return nil, err
	}
	root, err := d.Root()
	if err != nil {
		return nil, err
	}
	return root.Reach(relative)
}

// MakeDir opens a directory of the state directory, from the root that was checked, and makes those that are missing.
func (d Dir) MakeDir(path string, above, perm fs.FileMode) (*safefs.Dir, error) {
	relative, err := d.below(path)
	if err == nil {
		err = d.Prepare()
	}
	if err != nil {
		return nil, err
	}
	root, err := d.Root()
	if err != nil {
		return nil, err
	}
	return root.MakePath(relative, above, perm)
}

// InDirOf does something with the name of a file of the state directory in its directory.
func (d Dir) InDirOf(path string, work func(dir *safefs.Dir, name string) error) error {
	dir, err := d.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(work(dir, filepath.Base(path)), dir.Close())
}

// RemoveFile removes a file of the state directory; one that is gone is no error.
func (d Dir) RemoveFile(path string) error {
	return safefs.IgnoreMissing(d.InDirOf(path, (*safefs.Dir).Remove))
}

// Entries lists a directory of the state directory that may be missing.
func (d Dir) Entries(path string) ([]fs.DirEntry, error) {
	dir, err := d.OpenDir(path)
	if err != nil {
		return nil, safefs.IgnoreMissing(err)
	}
	entries, err := dir.Entries()
	return entries, errors.Join(err, dir.Close())
}

// Lstat describes a file of the state directory.
func (d Dir) Lstat(path string) (info fs.FileInfo, err error) {
	err = d.InDirOf(path, func(dir *safefs.Dir, name string) (err error) {
		info, err = dir.Lstat(name)
		return err
	})
	return info, err
}

// Exists reports whether something in the state directory has a path.
func (d Dir) Exists(path string) (bool, error) {
	_, err := d.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at the state directory: %w", err)
	}
	return true, nil
}

// ReadRegular reads a file that must be an ordinary one of at most so many bytes:
// neither a link to somewhere else nor a pipe that never ends.
func (d Dir) ReadRegular(path string, limit int64) ([]byte, error) {
	return d.readChecked(path, limit, func(string, fs.FileInfo) error { return nil })
}

// ReadPrivate reads such a file, which only its owner may read.
func (d Dir) ReadPrivate(path string, limit int64) ([]byte, error) {
	return d.readChecked(path, limit, safefs.CheckPrivate)
}

func (d Dir) readChecked(path string, limit int64, check func(path string, info fs.FileInfo) error) (text []byte, err error) {
	var f *os.File
	err = d.InDirOf(path, func(dir *safefs.Dir, name string) (err error) {
		f, err = dir.OpenFile(name, os.O_RDONLY, 0)
		return err
	})
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%w: it is a symbolic link", ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: it is not a regular file", ErrDamaged)
	case info.Size() > limit:
		return nil, fmt.Errorf("%w: its %d bytes are more than the %d that podctl writes", ErrDamaged, info.Size(), limit)
	}
	if err = check(path, info); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// Replace writes an unfinished file, and puts it in the place of another one.
func (d Dir) Replace(unfinished, path string, text []byte) (err error) {
	from, err := d.MakeDir(filepath.Dir(unfinished), privateMode, privateMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := d.MakeDir(filepath.Dir(path), privateMode, privateMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	file := Place{from, filepath.Base(unfinished)}
	if err = file.Replace(Place{to, filepath.Base(path)}, text, 0o600, (*os.File).Sync); err != nil {
		return err
	}
	return to.Sync()
}

// RemoveIfEmpty removes a directory unless something is in it.
func (d Dir) RemoveIfEmpty(path string) error {
	err := safefs.IgnoreMissing(d.InDirOf(path, (*safefs.Dir).RemoveDir))
	if errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// Place is a name in a directory.
type Place struct {
	Dir  *safefs.Dir
	Name string
}

// Replace writes a file under its own name, and lets it take the place of another one. What a
// killed process left under its name is removed, and so is an unfinished file after an error. Written is called before the file is closed.
func (p Place) Replace(other Place, text []byte, perm fs.FileMode, written func(*os.File) error) error {
	if err := p.Dir.Remove(p.Name); err != nil {
		return err
	}
	file, err := p.Dir.Create(p.Name, perm)
	if err != nil {
		return err
	}
	if _, err = file.Write(text); err == nil {
		err = written(file)
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = p.Dir.ReplaceIn(p.Name, other.Dir, other.Name)
	}
	if err != nil {
		return errors.Join(err, p.Dir.Remove(p.Name))
	}
	return nil
}

// SubdirsOf are the names of the directories in one that may be missing; "" is the directory
// itself.
func SubdirsOf(dir *safefs.Dir, name string) ([]string, error) {
	if name == "" {
		return Subdirs(dir)
	}
	sub, err := dir.Open(name)
	if safefs.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := Subdirs(sub)
	return names, errors.Join(err, sub.Close())
}

// Subdirs are the names of the directories in one.
func Subdirs(dir *safefs.Dir) ([]string, error) {
	entries, err := dir.Entries()
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, err
}
