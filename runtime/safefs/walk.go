package safefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// LinkError says that a symbolic link on the way to a path belongs to another user, who
// could lead podctl anywhere with it.
type LinkError struct {
	// Path is the link, UID its owner.
	Path string
	UID  uint32
}

// Error says whose link it is and what to do.
func (e *LinkError) Error() string {
	return fmt.Sprintf("%s is a symbolic link of user %d, which podctl does not follow: make what is missing yourself, or name the path that the link leads to", e.Path, e.UID)
}

// Open opens a directory by its absolute path. A link is followed if it belongs to root or
// to the user of this process; any other is a *LinkError.
func Open(path string) (*Dir, error) {
	if dir := openWithoutLinks(path); dir != nil {
		return dir, nil
	}
	return walk(path, func(d *Dir, name string, _ bool) (*Dir, error) { return d.Open(name) })
}

// openWithoutLinks opens a directory in one system call if no link is on the way to it. It is
// nil where there is one, where the kernel has no such call, and where nothing can be opened:
// the way step by step tells why.
func openWithoutLinks(path string) *Dir {
	if !filepath.IsAbs(path) {
		return nil
	}
	path = filepath.Clean(path)
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil
	}
	return &Dir{os.NewFile(uintptr(fd), path)}
}

// MakeAll opens a directory as Open does. Those that are missing are made, the last one
// with perm and the others with above.
func MakeAll(path string, above, perm fs.FileMode) (*Dir, error) {
	return walk(path, func(d *Dir, name string, last bool) (*Dir, error) {
		if last {
			return d.Make(name, perm)
		}
		return d.Make(name, above)
	})
}

// maxLinks bounds how many links are followed on one way, as the kernel does.
const maxLinks = 40

// walker goes from the root of the file system to a path.
type walker struct {
	dir *Dir
	// rest are the elements that are still to come.
	rest  []string
	links int
}

// opener opens, or makes, one element of a path that is no link. It is told which is the
// last one.
type opener func(d *Dir, name string, last bool) (*Dir, error)

// walk goes to an absolute path.
func walk(path string, next opener) (*Dir, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("the path %q is not absolute", path)
	}
	w := &walker{}
	err := w.enter("/")
	w.prepend(filepath.Clean(path))
	for err == nil && len(w.rest) > 0 {
		err = w.step(next)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w.dir, nil
}

func (w *walker) close() error {
	if w.dir == nil {
		return nil
	}
	return w.dir.Close()
}

// enter begins anew at a path that has no links.
func (w *walker) enter(path string) error {
	dir, err := Follow(path)
	if err != nil {
		return err
	}
	return w.move(dir)
}

func (w *walker) move(to *Dir) error {
	err := w.close()
	w.dir = to
	return err
}

// prepend puts the elements of a path before what is still to come.
func (w *walker) prepend(path string) {
	w.rest = append(strings.FieldsFunc(path, func(r rune) bool { return r == '/' }), w.rest...)
}

// step takes the next element.
func (w *walker) step(next opener) error {
	name := w.rest[0]
	w.rest = w.rest[1:]
	switch name {
	case ".":
		return nil
	case "..":
		return w.up()
	}
	link, err := w.dir.Handle(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	followed := false
	if err == nil {
		followed, err = w.follow(link)
		err = errors.Join(err, link.Close())
	} else {
		err = nil // It is for next to say so, or to make it.
	}
	if err != nil || followed {
		return err
	}
	below, err := next(w.dir, name, len(w.rest) == 0)
	if err != nil {
		return err
	}
	return w.move(below)
}

// up goes to the parent, for a link that has ".." in it.
func (w *walker) up() error {
	fd, err := unix.Openat(w.dir.fd(), "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: w.dir.Join(".."), Err: err}
	}
	return w.move(&Dir{os.NewFile(uintptr(fd), filepath.Dir(w.dir.Path()))})
}

// follow takes what an element holds for the next part of the way, if it is a link. Whose
// link it is and where it leads are asked of what was opened.
func (w *walker) follow(link *os.File) (bool, error) {
	info, err := link.Stat()
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return false, err
	}
	if uid, ok := Owner(info); !ok || (uid != 0 && int(uid) != os.Geteuid()) {
		return false, &LinkError{Path: link.Name(), UID: uid}
	}
	if w.links++; w.links > maxLinks {
		return false, &fs.PathError{Op: "open", Path: link.Name(), Err: unix.ELOOP}
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(link.Fd()), "", text)
	if err != nil {
		return false, &fs.PathError{Op: "readlink", Path: link.Name(), Err: err}
	}
	target := string(text[:n])
	w.prepend(target)
	if filepath.IsAbs(target) {
		return true, w.enter("/")
	}
	return true, nil
}

// Owner is the user that a file belongs to; false where that cannot be told.
func Owner(info fs.FileInfo) (uint32, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, true
}
