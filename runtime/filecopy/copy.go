package filecopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Options say how a copy is made.
type Options struct {
	// Owner owns what is created; nil leaves it to the caller's process, and takes the
	// set-user-id and set-group-id bits off.
	Owner *Owner
	// Progress is told of every file and of bytes as they are copied; it may be nil.
	Progress func(files, bytes int64)
	// Skipped is told of what is neither file, directory nor link; it may be nil.
	Skipped func(name, why string)
}

// Owner is a user and a group, by the ids of this machine.
type Owner struct{ UID, GID int }

// Copy copies what src is, a file or a directory with all that is in it, to the name
// below dir. Modes are kept, links are copied as links. A file that is there is
// replaced, a directory is added to.
func Copy(ctx context.Context, src, dir *os.File, name string, opts Options) error {
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		return fmt.Errorf("%q is no name of a file", name)
	}
	c := &copier{ctx: ctx, opts: opts}
	return c.entry(src, dir, name, name)
}

type copier struct {
	ctx  context.Context //nolint:containedctx // one copy is one call
	opts Options
	// files and bytes are what was copied so far.
	files, bytes int64
}

// entry copies an open file or directory. shown is its name for people.
func (c *copier) entry(src, dir *os.File, name, shown string) error {
	if err := c.ctx.Err(); err != nil {
		return context.Cause(c.ctx)
	}
	info, err := src.Stat()
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return c.directory(src, dir, name, shown)
	case info.Mode().IsRegular():
		return c.file(src, info, dir, name, shown)
	}
	c.skip(shown, "it is neither file, directory nor link")
	return nil
}

func (c *copier) skip(name, why string) {
	if c.opts.Skipped != nil {
		c.opts.Skipped(name, why)
	}
}

func (c *copier) file(src *os.File, info fs.FileInfo, dir *os.File, name, shown string) (err error) {
	// A new file, never one that is there: it may be a link, or a program that runs.
	if err = unix.Unlinkat(int(dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return named("replacing", shown, err)
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return named("creating", shown, err)
	}
	out := os.NewFile(uintptr(fd), name)
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err = io.Copy(out, &counted{c: c, r: src}); err != nil {
		return named("copying", shown, err)
	}
	c.files++
	c.tell()
	return named("giving its mode to", shown, c.settle(out, info.Mode()))
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

func (c *copier) directory(src, dir *os.File, name, shown string) (err error) {
	err = unix.Mkdirat(int(dir.Fd()), name, 0o700)
	made := err == nil
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return named("creating", shown, err)
	}
	out, err := openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return named("opening", shown, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	names, err := src.Readdirnames(-1)
	if err != nil {
		return named("reading", shown, err)
	}
	for _, child := range names {
		if err = c.child(src, out, child, path.Join(shown, child)); err != nil {
			return err
		}
	}
	if !made {
		return nil
	}
	info, err := src.Stat()
	if err != nil {
		return named("reading", shown, err)
	}
	return named("giving its mode to", shown, c.settle(out, info.Mode()))
}

// child copies one entry of a directory, without following a link.
func (c *copier) child(dir, out *os.File, name, shown string) (err error) {
	var st unix.Stat_t
	if err = unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return named("reading", shown, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return named("linking", shown, link(dir, out, name))
	case unix.S_IFREG, unix.S_IFDIR:
	default:
		c.skip(shown, "it is neither file, directory nor link")
		return nil
	}
	src, err := openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return named("opening", shown, err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	return c.entry(src, out, name, shown)
}

// linkMax is the longest content of a link, in bytes (Linux: PATH_MAX).
const linkMax = 4096

func link(dir, out *os.File, name string) error {
	target := make([]byte, linkMax)
	n, err := unix.Readlinkat(int(dir.Fd()), name, target)
	if err != nil {
		return err
	}
	if err = unix.Unlinkat(int(out.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return unix.Symlinkat(string(target[:n]), int(out.Fd()), name)
}

func openat(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func named(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", doing, name, err)
}

func (c *copier) tell() {
	if c.opts.Progress != nil {
		c.opts.Progress(c.files, c.bytes)
	}
}

// counted counts the bytes that are read, and ends with the context.
type counted struct {
	c *copier
	r io.Reader
}

// Read reads and counts.
func (r *counted) Read(p []byte) (int, error) {
	if r.c.ctx.Err() != nil {
		return 0, context.Cause(r.c.ctx)
	}
	n, err := r.r.Read(p)
	r.c.bytes += int64(n)
	r.c.tell()
	return n, err
}
