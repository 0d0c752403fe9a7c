package safefs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// place is what a path leads to: a descriptor that can be looked at and not read (O_PATH).
type place struct {
	fd   int
	stat unix.Stat_t
	// path names it without the links that led there. For a relative path it is relative.
	path string
	// viaProc is set when the path ends with a link of /proc: /dev/stdout does, and names
	// what this process holds already.
	viaProc bool
}

func (p *place) close() { unix.Close(p.fd) } //nolint:errcheck // Nothing was written.

// kind is the type of the file, as unix.S_IFREG.
func (p *place) kind() uint32 { return p.stat.Mode & unix.S_IFMT }

// dir is the directory that was found, which takes the descriptor over.
func (p *place) dir() (*Dir, error) {
	if p.kind() != unix.S_IFDIR {
		p.close()
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: unix.ENOTDIR}
	}
	return newDir(p.fd, p.path), nil
}

// policy says how a path is walked.
type policy struct {
	// follow returns why a link that the walk has met is not followed.
	follow func(w *walker, link *place) error
	// pass returns why no name is looked up in the directory where the walk is; nil passes all.
	pass func(at *place) error
	// mode is that of a directory to make where one is missing, which may be the last; nil
	// makes none.
	mode func(last bool) fs.FileMode
	// proc follows links of /proc as the kernel does, since their targets are no paths.
	proc bool
}

// followOurs follows links of root and of the user of this process.
func followOurs(_ *walker, link *place) error {
	if isForeign(link.stat.Uid) {
		return &LinkError{Path: link.path, UID: link.stat.Uid}
	}
	return nil
}

// maxLinks bounds how many links are followed on one way, as the kernel does.
const maxLinks = 40

// walker goes along a path, an element at a time.
type walker struct {
	policy
	at *place
	// rest are the elements that are still to come.
	rest  []string
	links int
}

// walk goes to where a path leads.
func walk(path string, rules policy) (*place, error) { return walkFrom(nil, path, rules) }

// walkFrom goes to where a path leads from a place, which it takes over; nil is the working directory.
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

// begin puts a path before what is still to come. It is seen from where the walk is.
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

// enter goes to a directory where paths begin.
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

// elements splits a path. It may hold "..", which leads up from where the walk is.
func elements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// look opens what a name in a directory stands for, a link itself included.
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

// step takes the next element.
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

// make makes the next element, which is missing. Whoever else made it meanwhile made a
// directory, or nothing is found.
func (w *walker) make(name string) (*place, error) {
	path := filepath.Join(w.at.path, name)
	if err := mkdirat(w.at.fd, name, w.mode(len(w.rest) == 1)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return look(w.at.fd, w.at.path, name, unix.O_DIRECTORY)
}

// follow puts what a link holds in its place. Whose link it is and where it leads are asked
// of what was opened.
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

// isOfProc reports whether a link lies in the proc file system.
func (p *place) isOfProc() bool {
	var system unix.Statfs_t
	return unix.Fstatfs(p.fd, &system) == nil && system.Type == unix.PROC_SUPER_MAGIC
}

// enterProc goes to where the kernel says that a link of /proc leads.
func (w *walker) enterProc(name string) error {
	next := &place{path: filepath.Join(w.at.path, name), viaProc: true}
	var err error
	if next.fd, err = unix.Openat(w.at.fd, name, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return &fs.PathError{Op: "open", Path: next.path, Err: err}
	}
	w.move(next)
	return unix.Fstat(next.fd, &next.stat)
}

// OpenDir opens a directory by its absolute path. A link is followed if it belongs to root or
// to the user of this process; any other is a *LinkError.
func OpenDir(path string) (*Dir, error) {
	return walkToDir(path, policy{follow: followOurs})
}

// MakeAll opens a directory as OpenDir does. Those that are missing are made, the last one
// with perm and the others with above.
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

// Open opens a directory in the directory. A link, and all else that is no directory, is
// ENOTDIR.
func (d *Dir) Open(name string) (*Dir, error) { return d.Sub(name) }

// Sub opens a directory some levels below.
func (d *Dir) Sub(names ...string) (*Dir, error) { return d.walk(names, policy{follow: followNone}) }

// Make opens a directory in the directory, which is made with exactly this mode if it does
// not exist. One that exists keeps its mode.
func (d *Dir) Make(name string, perm fs.FileMode) (*Dir, error) { return d.MakeSub(perm, perm, name) }

// MakeSub opens a directory some levels below. Those that are missing are made, the last
// one with perm and the others with above.
func (d *Dir) MakeSub(above, perm fs.FileMode, names ...string) (*Dir, error) {
	return d.walk(names, policy{follow: followNone, mode: modes(above, perm)})
}

// followNone takes a link for what it is: no directory.
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
