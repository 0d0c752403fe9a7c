package safefs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// place is the target of a path: a descriptor that can be inspected but not read (O_PATH).
type place struct {
	fd   int
	stat unix.Stat_t
	// path is its path without the links on the way. It is relative for a relative path.
	path string
	// viaProc is set if the path ends with a link of /proc, such as /dev/stdout, which names a file that this process
	// already holds.
	viaProc bool
}

func (p *place) close() { unix.Close(p.fd) } //nolint:errcheck // Nothing was written.

// kind returns the type of the file, for example unix.S_IFREG.
func (p *place) kind() uint32 { return p.stat.Mode & unix.S_IFMT }

// dir returns the directory at this place and takes over the descriptor.
func (p *place) dir() (*Dir, error) {
	if p.kind() != unix.S_IFDIR {
		p.close()
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: unix.ENOTDIR}
	}
	return newDir(p.fd, p.path), nil
}

// policy defines how a path is walked.
type policy struct {
	// follow returns the reason why a link is not followed, or nil.
	follow func(w *walker, link *place) error
	// pass returns the reason why no name may be looked up in the current directory. A nil pass allows all.
	pass func(at *place) error
	// mode returns the mode for creating a missing directory. If nil, none is created.
	mode func(last bool) fs.FileMode
	// proc follows links of /proc like the kernel, because their targets are not paths.
	proc bool
}

// followOurs follows links of root and of the user of this process.
func followOurs(_ *walker, link *place) error {
	if isForeign(link.stat.Uid) {
		return &LinkError{Path: link.path, UID: link.stat.Uid}
	}
	return nil
}

// maxLinks limits the followed links per path, as in the kernel.
const maxLinks = 40

// walker walks along a path, one element at a time.
type walker struct {
	policy
	at *place
	// rest holds the remaining elements.
	rest  []string
	links int
}

// walk returns the place that a path leads to.
func walk(path string, rules policy) (*place, error) { return walkFrom(nil, path, rules) }

// walkFrom returns the place that a path leads to, starting at a place that it takes over. A nil start is the working
// directory.
func walkFrom(at *place, path string, rules policy) (*place, error) {
	w := &walker{policy: rules, at: at}
	err := w.begin(path)
	for err == nil && len(w.rest) > 0 {
		err = w.step()
	}
	if err != nil {
		if w.at != nil {
			w.at.close()
		}
		return nil, err
	}
	return w.at, nil
}

// begin inserts a path before the remaining elements. It is relative to the current directory.
func (w *walker) begin(path string) error {
	w.rest = append(elements(path), w.rest...)
	switch {
	case filepath.IsAbs(path):
		return w.enter("/")
	case w.at == nil:
		return w.enter(".")
	}
	return nil
}

// enter goes to the root or the working directory.
func (w *walker) enter(name string) error {
	next, err := look(unix.AT_FDCWD, "", name, 0)
	if err != nil {
		return err
	}
	w.move(next)
	return nil
}

func (w *walker) move(to *place) {
	if w.at != nil {
		w.at.close()
	}
	w.at = to
}

// elements splits a path. It may contain "..", which leads up from the current directory.
func elements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// look opens a name in a directory with O_PATH, including a link itself.
func look(dir int, dirPath, name string, flags int) (*place, error) {
	p := &place{path: filepath.Join(dirPath, name)}
	var err error
	if p.fd, err = openat(dir, name, unix.O_PATH|flags, 0); err != nil {
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: err}
	}
	if err = unix.Fstat(p.fd, &p.stat); err != nil {
		p.close()
		return nil, &fs.PathError{Op: "stat", Path: p.path, Err: err}
	}
	return p, nil
}

// step walks the next element.
func (w *walker) step() error {
	name := w.rest[0]
	if name == "." {
		w.rest = w.rest[1:]
		return nil
	}
	if w.pass != nil {
		if err := w.pass(w.at); err != nil {
			return err
		}
	}
	next, err := look(w.at.fd, w.at.path, name, 0)
	if errors.Is(err, fs.ErrNotExist) && w.mode != nil {
		next, err = w.make(name)
	}
	if err != nil {
		return err
	}
	if next.kind() == unix.S_IFLNK {
		defer next.close()
		return w.follow(next, name)
	}
	w.rest = w.rest[1:]
	w.move(next)
	return nil
}

// make creates the next element. If another process created it meanwhile, it must be a directory.
func (w *walker) make(name string) (*place, error) {
	path := filepath.Join(w.at.path, name)
	if err := mkdirat(w.at.fd, name, w.mode(len(w.rest) == 1)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return look(w.at.fd, w.at.path, name, unix.O_DIRECTORY)
}

// follow replaces a link with its target. It checks the owner and reads the target of the opened link.
func (w *walker) follow(link *place, name string) error {
	if err := w.policy.follow(w, link); err != nil {
		return err
	}
	if w.links++; w.links > maxLinks {
		return &fs.PathError{Op: "open", Path: link.path, Err: unix.ELOOP}
	}
	w.rest = w.rest[1:]
	if w.proc && link.isOfProc() {
		return w.enterProc(name)
	}
	target, err := readlinkat(link.fd, "")
	if err != nil {
		return &fs.PathError{Op: "readlink", Path: link.path, Err: err}
	}
	return w.begin(target)
}

// isOfProc reports whether a link is in the proc file system.
func (p *place) isOfProc() bool {
	var system unix.Statfs_t
	return unix.Fstatfs(p.fd, &system) == nil && system.Type == unix.PROC_SUPER_MAGIC
}

// enterProc goes to the kernel's target of a link of /proc.
func (w *walker) enterProc(name string) error {
	next := &place{path: filepath.Join(w.at.path, name), viaProc: true}
	var err error
	if next.fd, err = unix.Openat(w.at.fd, name, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return &fs.PathError{Op: "open", Path: next.path, Err: err}
	}
	w.move(next)
	return unix.Fstat(next.fd, &next.stat)
}

// OpenDir opens a directory by its absolute path. It follows a link of root or of the user of this process. Any other
// link is a *LinkError.
func OpenDir(path string) (*Dir, error) {
	return walkToDir(path, policy{follow: followOurs})
}

// MakeAll opens a directory like OpenDir. It creates missing directories, the last one with perm and its parents with
// above.
func MakeAll(path string, above, perm fs.FileMode) (*Dir, error) {
	return walkToDir(path, policy{follow: followOurs, mode: modes(above, perm)})
}

func modes(above, perm fs.FileMode) func(last bool) fs.FileMode {
	return func(last bool) fs.FileMode {
		if last {
			return perm
		}
		return above
	}
}

// walkToDir opens a directory by its absolute path.
func walkToDir(path string, rules policy) (*Dir, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("the path %q is not absolute", path)
	}
	p, err := walk(filepath.Clean(path), rules)
	if err != nil {
		return nil, err
	}
	return p.dir()
}

// Open opens a directory in the directory. For a link, or any other file, it returns ENOTDIR.
func (d *Dir) Open(name string) (*Dir, error) { return d.Sub(name) }

// Sub opens a directory some levels below.
func (d *Dir) Sub(names ...string) (*Dir, error) { return d.walk(names, policy{follow: followNone}) }

// Make opens a directory in the directory. It creates a missing one with exactly this mode; an existing one keeps its
// mode.
func (d *Dir) Make(name string, perm fs.FileMode) (*Dir, error) { return d.MakeSub(perm, perm, name) }

// MakeSub opens a directory some levels below. It creates missing directories, the last one with perm and its parents
// with above.
func (d *Dir) MakeSub(above, perm fs.FileMode, names ...string) (*Dir, error) {
	return d.walk(names, policy{follow: followNone, mode: modes(above, perm)})
}

// followNone treats a link as a file that is not a directory.
func followNone(_ *walker, link *place) error {
	return &fs.PathError{Op: "open", Path: link.path, Err: unix.ENOTDIR}
}

// walk goes to a directory some levels below.
func (d *Dir) walk(names []string, rules policy) (*Dir, error) {
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return nil, err
		}
	}
	at, err := look(d.fd(), d.Path(), ".", 0)
	if err != nil {
		return nil, err
	}
	p, err := walkFrom(at, strings.Join(names, "/"), rules)
	if err != nil {
		return nil, err
	}
	return p.dir()
}
