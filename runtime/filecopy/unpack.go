package filecopy

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Unpack writes the contents of a tar archive below a directory. It keeps modes and links. It replaces an existing file
// and adds to an existing directory. No name of the archive leads out of the directory, and no existing or archived
// link is followed.
func Unpack(ctx context.Context, r io.Reader, dir *os.File, opts Options) error {
	u := &unpacker{
		copier:   copier{ctx: ctx, opts: opts},
		archive:  tar.NewReader(interruptible(ctx, r)),
		onTheWay: map[string]bool{},
	}
	for {
		h, err := u.archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the tar archive: %w", err)
		}
		if err = u.entry(h, dir); err != nil {
			return err
		}
	}
}

// interruptible returns a reader that ends with a context, even while the underlying reader blocks, like a terminal or
// a pipe.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { in.CloseWithError(context.Cause(ctx)) })
	return out
}

// unpacker is an archive that is being read.
type unpacker struct {
	copier
	archive *tar.Reader
	// onTheWay holds the directories that were created as parents of other entries.
	onTheWay map[string]bool
}

// entry writes one entry of the archive.
func (u *unpacker) entry(h *tar.Header, dir *os.File) (err error) {
	at, names := placeOf(h.Name)
	switch {
	case slices.Contains(names, ".."):
		return at.wrap("unpacking", errors.New("its name leads out of the archive"))
	case len(names) == 0:
		return nil // The directory itself.
	case len(names) > DepthMax:
		return tooDeep(at)
	}
	parent, err := u.parent(dir, names[:len(names)-1])
	if err != nil {
		return at.wrap("creating", err)
	}
	defer func() { err = errors.Join(err, parent.Close()) }()
	name, mode := names[len(names)-1], h.FileInfo().Mode()
	switch h.Typeflag {
	case tar.TypeDir:
		return at.wrap("creating", u.directory(parent, names, mode))
	case tar.TypeReg:
		return at.wrap("creating", u.makeFile(parent, name, mode))
	case tar.TypeSymlink:
		return at.wrap("linking", u.replace(parent, name, func() error {
			return unix.Symlinkat(h.Linkname, int(parent.Fd()), name)
		}))
	case tar.TypeLink:
		return at.wrap("linking", u.hardLink(dir, parent, name, h.Linkname))
	case tar.TypeXGlobalHeader:
		return nil
	}
	u.skip(at, notCopied)
	return nil
}

// placeOf returns the place of an entry and the elements of its name. As in other programs, a leading slash means the
// target directory.
func placeOf(name string) (*place, []string) {
	names := slices.DeleteFunc(strings.Split(name, "/"), func(element string) bool {
		return element == "" || element == "."
	})
	return &place{name: name}, names
}

// parent opens the directory of an entry and creates missing parents.
func (u *unpacker) parent(dir *os.File, names []string) (*os.File, error) {
	at, err := openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	for i, name := range names {
		if err != nil {
			return nil, err
		}
		made, failed := u.makeDir(at, name, fs.ModeDir|0o755)
		if made {
			u.onTheWay[strings.Join(names[:i+1], "/")] = true
		}
		err = failed
		var next *os.File
		if err == nil {
			next, err = openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY)
		}
		err = errors.Join(err, at.Close())
		at = next
	}
	return at, err
}

// makeDir creates a directory if it is missing, and reports whether it did.
func (u *unpacker) makeDir(dir *os.File, name string, mode fs.FileMode) (bool, error) {
	err := unix.Mkdirat(int(dir.Fd()), name, 0o700)
	if errors.Is(err, unix.EEXIST) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, u.setDirAttributes(dir, name, mode)
}

// directory creates a directory of the archive. One that was created as a parent gets the archive's mode; one that
// existed before keeps its own.
func (u *unpacker) directory(dir *os.File, names []string, mode fs.FileMode) error {
	name, path := names[len(names)-1], strings.Join(names, "/")
	if u.onTheWay[path] {
		delete(u.onTheWay, path)
		return u.setDirAttributes(dir, name, mode)
	}
	_, err := u.makeDir(dir, name, mode)
	return err
}

func (u *unpacker) setDirAttributes(dir *os.File, name string, mode fs.FileMode) error {
	made, err := openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	return errors.Join(u.setAttributes(made, mode), made.Close())
}

func (u *unpacker) makeFile(dir *os.File, name string, mode fs.FileMode) error {
	return u.replace(dir, name, func() error {
		out, err := openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, &countingReader{c: &u.copier, r: u.archive})
		if err == nil {
			err = u.setAttributes(out, mode)
		}
		u.files++
		u.reportProgress()
		return errors.Join(err, out.Close())
	})
}

// hardLink creates another name for a file that the archive had before.
func (u *unpacker) hardLink(dir, parent *os.File, name, target string) (err error) {
	_, names := placeOf(target)
	if len(names) == 0 || slices.Contains(names, "..") {
		return errors.New("it is a link to a file that is not in the archive")
	}
	from, err := u.parent(dir, names[:len(names)-1])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	return u.replace(parent, name, func() error {
		return unix.Linkat(int(from.Fd()), names[len(names)-1], int(parent.Fd()), name, 0)
	})
}

// replace removes an existing file or link, and calls create.
func (u *unpacker) replace(dir *os.File, name string, create func() error) error {
	if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return create()
}
