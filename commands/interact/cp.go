package interact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/filecopy"
)

// NewCopy returns the command `podctl cp`.
func NewCopy(sess *session.Session) *cobra.Command {
	o := &selection.Container{}
	cmd := &cobra.Command{
		Use:   "cp [flags] POD:PATH PATH|- | PATH|- POD:PATH",
		Short: "Copy files to and from a container",
		Long: "Copy files and directories between this machine and a running container. " +
			"The image does not need tar. " +
			"Modes, symbolic\nlinks and holes are kept. " +
			"Files copied into a container belong to the user that the container runs as. " +
			"Paths and\nlinks cannot leave the container or the destination. " +
			"Pipes, sockets and devices are skipped, and trees with more\nthan 256 nested directories are refused. " +
			"Use - as the destination to write a tar archive to stdout, " +
			"or as the source\nto unpack a tar archive from stdin into a directory of the container." +
			flags.ExitCodes("0 success", "1 error", "5 manifest refused", "130 interrupted"),
		Example: "  podctl cp web:/etc/hosts .\n" +
			"  podctl cp ./site web:/srv/ -c app\n" +
			"  podctl cp web:/var/log - | tar -x\n" +
			"  tar -c site | podctl cp - web:/srv",
		ValidArgsFunction: completion.Of(sess.Flags).Copy,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return exit.Usagef("cp needs a source and a destination, one of them POD:PATH")
			}
			return runCopy(cmd.Context(), sess, o, args[0], args[1])
		},
	}
	o.Register(cmd.Flags(), "Print nothing")
	return cmd
}

// stream is the argument for stdin and stdout. A file with this name is ./-.
const stream = "-"

// inContainer splits POD:PATH. An argument without a colon, or one that begins with a dot or slash, is a local path.
func inContainer(arg string) (pod, name string, ok bool) {
	pod, name, ok = strings.Cut(arg, ":")
	if !ok || pod == "" || strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/") {
		return "", arg, false
	}
	return pod, name, true
}

func runCopy(ctx context.Context, sess *session.Session, o *selection.Container, from, to string) error {
	fromPod, source, out := inContainer(from)
	toPod, destination, in := inContainer(to)
	switch {
	case out == in:
		return exit.Usagef("one argument must be POD:PATH, the other a local path")
	case source == "" || destination == "":
		return exit.Usagef("a path is missing after the pod")
	case destination == stream && out && sess.IO.OutTTY:
		return exit.Usagef("refusing to write a tar archive to a terminal: redirect the output to a file or a pipe")
	}
	d, engine, err := selection.Running(ctx, sess, fromPod+toPod)
	if err != nil {
		return err
	}
	container, err := o.Choose(sess.IO, d)
	if err != nil {
		return err
	}
	files, err := engine.Sessions.Files(ctx, d, container)
	if err != nil {
		return err
	}
	c := &copying{io: sess.IO, quiet: o.Quiet, began: sess.IO.Now()}
	switch {
	case out && destination == stream:
		err = c.archive(ctx, files.Root, source)
	case out:
		err = c.out(ctx, files.Root, source, destination)
	case source == stream:
		err = c.unpack(ctx, files.Root, files.Owner, destination)
	default:
		err = c.in(ctx, files.Root, files.Owner, source, destination)
	}
	return errors.Join(err, files.Close())
}

// copying is a running copy and its progress.
type copying struct {
	io           *terminal.IO
	quiet        bool
	began, shown time.Time
	files, bytes int64
	// seen is the progress that the terminal shows.
	seen string
}

func (c *copying) out(ctx context.Context, root *filecopy.Root, source, destination string) (err error) {
	src, err := root.Open(source)
	if err != nil {
		return fmt.Errorf("in the container: %w", err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dir, name, err := filecopy.Target(destination, baseName(source))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return c.copy(ctx, src, dir, name, filecopy.Options{})
}

func (c *copying) in(
	ctx context.Context, root *filecopy.Root, owner filecopy.Owner, source, destination string,
) (err error) {
	src, err := input.OpenTree(source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	absolute, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	dir, name, err := root.Target(destination, baseName(absolute))
	if err != nil {
		return fmt.Errorf("in the container: %w", err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return c.copy(ctx, src, dir, name, filecopy.Options{Owner: &owner})
}

// archive writes files of the container as a tar archive to stdout.
func (c *copying) archive(ctx context.Context, root *filecopy.Root, source string) (err error) {
	src, err := root.Open(source)
	if err != nil {
		return fmt.Errorf("in the container: %w", err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	return c.run(filecopy.Options{}, func(opts filecopy.Options) error {
		return filecopy.Archive(ctx, src, c.io.Out, baseName(source), opts)
	})
}

// unpack unpacks a tar archive from stdin into a directory of the container.
func (c *copying) unpack(
	ctx context.Context, root *filecopy.Root, owner filecopy.Owner, destination string,
) (err error) {
	dir, err := root.OpenDir(destination)
	if err != nil {
		return fmt.Errorf("in the container: %w", err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return c.run(filecopy.Options{Owner: &owner}, func(opts filecopy.Options) error {
		return filecopy.Unpack(ctx, c.io.In, dir, opts)
	})
}

// baseName returns the last part of a path, which is the name of its copy. For the root directory it returns root.
func baseName(name string) string {
	if base := path.Base(path.Clean("/" + name)); base != "/" {
		return base
	}
	return "root"
}

func (c *copying) copy(ctx context.Context, src, dir *os.File, name string, opts filecopy.Options) error {
	return c.run(opts, func(opts filecopy.Options) error { return filecopy.Copy(ctx, src, dir, name, opts) })
}

// run runs a copy and reports its progress and result.
func (c *copying) run(opts filecopy.Options, work func(filecopy.Options) error) error {
	opts.Progress = c.progress
	opts.Skipped = func(name, why string) { c.io.Note("note: skipped %s: %s", name, why) }
	if !c.quiet && c.io.ShowsLive() {
		live := c.io.Live(func(int) []string { return []string{"    copying: " + c.seen} })
		defer live.Stop()
	}
	err := work(opts)
	if err == nil && !c.quiet {
		c.io.Note("copied %s in %.1fs", c.text(), c.io.Now().Sub(c.began).Seconds())
	}
	return err
}

// progressTick is the time between two updates of the progress.
const progressTick = 200 * time.Millisecond

// progress records the counts, and updates the terminal once per progressTick.
func (c *copying) progress(files, bytes int64) {
	c.files, c.bytes = files, bytes
	if now := c.io.Now(); now.Sub(c.shown) >= progressTick {
		c.shown = now
		c.io.Exclusive(func() { c.seen = c.text() })
	}
}

func (c *copying) text() string {
	return view.Count(int(c.files), "file") + ", " + view.Size(c.bytes)
}
