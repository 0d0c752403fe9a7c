package filecopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// Options define how a copy is made.
type Options struct {
	// Owner is the owner of new files. If nil, they belong to the user of this process and lose the set-user-ID and
	// set-group-ID bits.
	Owner *Owner
	// Progress, if not nil, is called for every file and while bytes are copied. Holes do not count as bytes.
	Progress func(files, bytes int64)
	// Skipped, if not nil, is called for files that are left out. name fits on one line.
	Skipped func(name, why string)
}

// Owner is a user and a group, with the ids of this machine.
type Owner struct{ UID, GID int }

// DepthMax limits the nesting of directories, including the first one. Each level needs two descriptors during the
// copy, so the usual limit of 1024 is enough. Real trees have less than fifty levels, and a path of more than 4096
// bytes cannot even be opened.
const DepthMax = 256

// Copy copies src, a file or a directory with its contents, to a name in dir. It keeps modes and holes, and copies
// links as links. It replaces an existing file and adds to an existing directory. It copies as many bytes of a file as
// it had when it was opened. After an error, everything copied before stays.
func Copy(ctx context.Context, src, dir *os.File, name string, opts Options) error {
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		return fmt.Errorf("%q is not a file name", name)
	}
	c := &copier{ctx: ctx, opts: opts}
	return c.entry(c, src, &place{name: name, in: dir})
}

type copier struct {
	ctx  context.Context //nolint:containedctx // one copy is one call
	opts Options
	// files and bytes count what was copied so far.
	files, bytes int64
	// made is the target directory; nil for a file.
	made fs.FileInfo
}

// target receives the files that a walk finds.
type target interface {
	// directory calls children with the new directory.
	directory(info fs.FileInfo, at *place, children func(in *os.File) error) error
	file(src *os.File, info fs.FileInfo, at *place) error
	link(to string, info fs.FileInfo, at *place) error
}

// entry copies an open file or directory to a target.
func (c *copier) entry(t target, src *os.File, at *place) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	info, err := src.Stat()
	switch {
	case err != nil:
		return at.wrap("reading", err)
	case info.IsDir() && at.depth >= DepthMax:
		return tooDeep(at)
	case info.IsDir():
		return t.directory(info, at, func(in *os.File) error {
			return children(src, at, func(name string) error { return c.child(t, src, at.below(name, in)) })
		})
	case info.Mode().IsRegular():
		return t.file(src, info, at)
	}
	c.skip(at, notCopied)
	return nil
}

// notCopied is the reason why pipes, sockets and devices are left out.
const notCopied = "it is neither a file, a directory nor a link"

func (c *copier) skip(at *place, why string) {
	if c.opts.Skipped != nil {
		c.opts.Skipped(at.String(), why)
	}
}

func (c *copier) file(src *os.File, info fs.FileInfo, at *place) (err error) {
	if isAt(at.in, at.name, info) {
		return at.wrap("copying", errSame)
	}
	// Create a new file, because an existing one may be a link, or a program that runs.
	if err = unix.Unlinkat(int(at.in.Fd()), at.name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return at.wrap("replacing", err)
	}
	out, err := openat(at.in, at.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return at.wrap("creating", err)
	}
	defer func() { err = errors.Join(err, at.wrap("closing", out.Close())) }()
	if err = c.content(src, out, info.Size()); err != nil {
		return at.wrap("copying", err)
	}
	c.files++
	c.reportProgress()
	return at.wrap("setting the mode of", c.setAttributes(out, info.Mode()))
}

// errSame reports that source and destination are the same.
var errSame = errors.New("source and destination are the same")

// isAt reports whether a file is the one with a name in a directory.
func isAt(dir *os.File, name string, info fs.FileInfo) bool {
	handle, there, err := safefs.Handle(dir, name)
	if err != nil {
		return false
	}
	defer handle.Close() //nolint:errcheck // nothing was written through it
	return os.SameFile(there, info)
}

// setAttributes sets the owner of a new file and then its mode, because changing the owner may clear bits.
func (c *copier) setAttributes(f *os.File, mode fs.FileMode) error {
	if o := c.opts.Owner; o != nil {
		if err := f.Chown(o.UID, o.GID); err != nil {
			return err
		}
	}
	kept := fs.ModePerm | fs.ModeSticky
	if c.opts.Owner != nil {
		kept |= fs.ModeSetuid | fs.ModeSetgid
	}
	// Without an owner, new files belong to the caller, and must not be set-user-ID programs from elsewhere.
	return f.Chmod(mode & kept)
}

func (c *copier) directory(info fs.FileInfo, at *place, children func(*os.File) error) (err error) {
	if c.made != nil && os.SameFile(c.made, info) {
		c.skip(at, "it is the destination of the copy")
		return nil
	}
	err = unix.Mkdirat(int(at.in.Fd()), at.name, 0o700)
	created := err == nil
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return at.wrap("creating", err)
	}
	out, err := openat(at.in, at.name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return at.wrap("opening", err)
	}
	defer func() { err = errors.Join(err, at.wrap("closing", out.Close())) }()
	if isAt(out, ".", info) {
		return at.wrap("copying", errSame)
	}
	if c.made == nil {
		if c.made, err = out.Stat(); err != nil {
			return at.wrap("reading", err)
		}
	}
	if err = children(out); err != nil || !created {
		return err
	}
	return at.wrap("setting the mode of", c.setAttributes(out, info.Mode()))
}

// children visits the entries of a directory.
func children(src *os.File, at *place, visit func(name string) error) error {
	for name, err := range safefs.Names(src) {
		if err != nil {
			return at.wrap("reading", err)
		}
		if err = visit(name); err != nil {
			return err
		}
	}
	return nil
}

func tooDeep(at *place) error {
	return fmt.Errorf("copying %s: directories are nested more than %d levels deep; "+
		"copy the contents of the deepest separately, or remove it", at, DepthMax)
}

// child copies one entry of a directory to a target without following a link. It opens the file that it has checked,
// even if its name was replaced meanwhile.
func (c *copier) child(t target, dir *os.File, at *place) (err error) {
	handle, info, err := safefs.Handle(dir, at.name)
	if err != nil {
		return at.wrap("reading", err)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		var to string
		if to, err = safefs.LinkTarget(handle); err == nil {
			err = t.link(to, info, at)
		}
		return at.wrap("linking", errors.Join(err, handle.Close()))
	case !info.IsDir() && !info.Mode().IsRegular():
		c.skip(at, notCopied)
		return handle.Close()
	}
	src, err := safefs.Reopen(handle, unix.O_RDONLY, plain(at.name))
	if err = errors.Join(err, handle.Close()); err != nil {
		return at.wrap("opening", err)
	}
	defer func() { err = errors.Join(err, at.wrap("closing", src.Close())) }()
	return c.entry(t, src, at)
}

func (c *copier) link(to string, _ fs.FileInfo, at *place) error {
	if err := unix.Unlinkat(int(at.in.Fd()), at.name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return unix.Symlinkat(to, int(at.in.Fd()), at.name)
}

// openat opens or creates a file in a directory without following a link. Errors of the file have a name that is safe
// for a terminal.
func openat(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), plain(name)), nil
}

func (c *copier) reportProgress() {
	if c.opts.Progress != nil {
		c.opts.Progress(c.files, c.bytes)
	}
}
