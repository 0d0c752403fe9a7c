package filecopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// Options say how a copy is made.
type Options struct {
	// Owner owns what is created; nil leaves it to the caller's process, and takes the
	// set-user-id and set-group-id bits off.
	Owner *Owner
	// Progress is called for every file, and as bytes are copied; it may be nil. Holes
	// are no bytes that are copied.
	Progress func(files, bytes int64)
	// Skipped is called for what is left out; it may be nil. The name is fit for one line.
	Skipped func(name, why string)
}

// Owner is a user and a group, by the ids of this machine.
type Owner struct{ UID, GID int }

// DepthMax is how many directories may lie in each other in what is copied, the first one
// included. Each costs two descriptors while what is in it is copied, so that a process with the
// usual limit of 1024 has enough. Trees that people make have less than fifty levels; a path of
// more than 4096 bytes cannot even be opened.
const DepthMax = 256

// Copy copies what src is, a file or a directory with all that is in it, to the name
// below dir. Modes are kept, links are copied as links, holes of files stay holes. A file that is
// there is replaced, a directory is added to. Of a file so much is copied as it had when it was
// opened. After an error what was copied before stays.
func Copy(ctx context.Context, src, dir *os.File, name string, opts Options) error {
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		return fmt.Errorf("%q is no name of a file", name)
	}
	c := &copier{ctx: ctx, opts: opts}
	return c.entry(c, src, &place{name: name, in: dir})
}

type copier struct {
	ctx  context.Context //nolint:containedctx // one copy is one call
	opts Options
	// files and bytes are what was copied so far.
	files, bytes int64
	// made is the directory into which all is copied; nil for a file.
	made fs.FileInfo
}

// target takes what a walk finds.
type target interface {
	// directory calls children with the directory that takes them.
	directory(info fs.FileInfo, at *place, children func(in *os.File) error) error
	file(src *os.File, info fs.FileInfo, at *place) error
	link(to string, info fs.FileInfo, at *place) error
}

// entry brings an open file or directory to a target.
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

// notCopied says why pipes, sockets and devices are left out.
const notCopied = "it is neither file, directory nor link"

func (c *copier) skip(at *place, why string) {
	if c.opts.Skipped != nil {
		c.opts.Skipped(at.String(), why)
	}
}

func (c *copier) file(src *os.File, info fs.FileInfo, at *place) (err error) {
	if isAt(at.in, at.name, info) {
		return at.wrap("copying", errSame)
	}
	// A new file, never one that is there: it may be a link, or a program that runs.
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
	c.tell()
	return at.wrap("giving its mode to", c.settle(out, info.Mode()))
}

// errSame says that a copy would take its own place.
var errSame = errors.New("source and destination are the same")

// isAt reports whether a file is what lies at a name in a directory.
func isAt(dir *os.File, name string, info fs.FileInfo) bool {
	handle, there, err := safefs.Handle(dir, name)
	if err != nil {
		return false
	}
	defer handle.Close() //nolint:errcheck // nothing was written through it
	return os.SameFile(there, info)
}

// settle gives what was created its owner and then its mode, which a change of the
// owner may cut.
func (c *copier) settle(f *os.File, mode fs.FileMode) error {
	if o := c.opts.Owner; o != nil {
		if err := f.Chown(o.UID, o.GID); err != nil {
			return err
		}
	}
	kept := fs.ModePerm | fs.ModeSticky
	if c.opts.Owner != nil {
		kept |= fs.ModeSetuid | fs.ModeSetgid
	}
	// Without an owner what is created is the caller's: a program that takes on its
	// user must not come from elsewhere.
	return f.Chmod(mode & kept)
}

func (c *copier) directory(info fs.FileInfo, at *place, children func(*os.File) error) (err error) {
	if c.made != nil && os.SameFile(c.made, info) {
		c.skip(at, "it is where the copy is written")
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
	return at.wrap("giving its mode to", c.settle(out, info.Mode()))
}

// namesAtOnce is how many names of a directory are held in memory.
const namesAtOnce = 256

// children visits what is in a directory.
func children(src *os.File, at *place, visit func(name string) error) error {
	for {
		names, err := src.Readdirnames(namesAtOnce)
		for _, name := range names {
			if failed := visit(name); failed != nil {
				return failed
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return at.wrap("reading", err)
		}
	}
}

func tooDeep(at *place) error {
	return fmt.Errorf("copying %s: more than %d directories lie in each other there; copy what is below on its own, or remove it", at, DepthMax)
}

// child brings one entry of a directory to a target, without following a link. What is looked at is what
// is opened, whatever its name stands for a moment later.
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

// openat opens or creates a file in a directory, without following a link. Errors of the file
// bear a name that is fit for a terminal.
func openat(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), plain(name)), nil
}

func (c *copier) tell() {
	if c.opts.Progress != nil {
		c.opts.Progress(c.files, c.bytes)
	}
}
