package nofollow

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

// linksMax is how many links a path may lead over (Linux: MAXSYMLINKS).
const linksMax = 40

// File opens the regular file at an absolute path for reading, by the rule of Dir. The caller
// closes it.
func File(path string, last int) (f *os.File, info fs.FileInfo, err error) {
	dir, err := Dir(filepath.Dir(path), last-1)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	f, info, err = Regular(dir, filepath.Base(path))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, info, nil
}

// Dir opens the directory at an absolute path. Of its last elements so many may be no links:
// those that belong to one pod, which a container may have mounted. In what is above them a
// link is followed if it and the directory it lies in belong to root, or to the user that
// podctl runs as, and not all users may write to that directory. The caller closes it.
func Dir(path string, last int) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%q is not an absolute path", path)
	}
	w := &walk{rest: elements(filepath.Clean(path)), last: last}
	dir, err := w.run()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return dir, nil
}

// walk is the way along a path, an element at a time.
type walk struct {
	// dir is where it has come to, a handle.
	dir  *os.File
	rest []string
	// last is the number of elements at the end of rest that may be no links.
	last, links int
}

func (w *walk) run() (*os.File, error) {
	err := w.toRoot()
	for err == nil && len(w.rest) > 0 {
		err = w.step()
	}
	if w.dir == nil {
		return nil, err
	}
	defer w.dir.Close() //nolint:errcheck // nothing was written through it
	if err != nil {
		return nil, err
	}
	return openAt(w.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY)
}

func (w *walk) toRoot() error {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return w.enter(os.NewFile(uintptr(fd), "/"))
}

func (w *walk) enter(dir *os.File) error {
	before := w.dir
	w.dir = dir
	if before == nil {
		return nil
	}
	return before.Close()
}

// step goes into the next element, or puts in its place what it is a link to.
func (w *walk) step() error {
	next, info, err := Handle(w.dir, w.rest[0])
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		w.rest = w.rest[1:]
		return w.enter(next)
	}
	target, err := w.follow(next, info)
	if err = errors.Join(err, next.Close()); err != nil {
		return fmt.Errorf("%s: %w", w.rest[0], err)
	}
	w.rest = append(elements(target), w.rest[1:]...)
	if filepath.IsAbs(target) {
		return w.toRoot()
	}
	return nil
}

// follow reads a link, if it may be followed.
func (w *walk) follow(link *os.File, info fs.FileInfo) (string, error) {
	if len(w.rest) <= w.last {
		return "", ErrLink
	}
	in, err := w.dir.Stat()
	if err != nil {
		return "", err
	}
	if !trusted(info) || !trusted(in) || in.Mode().Perm()&0o002 != 0 {
		return "", errors.New("it is a link that another user made, or could have made: podctl does not follow it")
	}
	if w.links++; w.links > linksMax {
		return "", unix.ELOOP
	}
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(link.Fd()), "", target)
	if err != nil {
		return "", err
	}
	return string(target[:n]), nil
}

// trusted reports whether a file belongs to root or to the user that podctl runs as.
func trusted(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

// elements splits a path. It may hold "..", which leads up from where the walk is.
func elements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

func openAt(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
