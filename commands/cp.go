package commands

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

	"github.com/podctl/podctl/runtime/filecopy"
)

type copyOptions struct {
	streamOptions
}

func newCopy(g *globals) *cobra.Command {
	o := &copyOptions{}
	cmd := &cobra.Command{
		Use:   "cp [flags] POD:PATH PATH | PATH POD:PATH",
		Short: "Copy files into and out of a container",
		Long: "Copy files and trees between this machine and a running container, whose image needs no tar for it. Modes are kept,\n" +
			"links are copied as links, and holes stay holes. What is copied in belongs to the user that the container runs\n" +
			"as. No path and no link leads out of the container, or out of what is written here. Pipes, sockets and devices\n" +
			"are left out, and a tree of more than 256 directories that lie in each other is refused." +
			exitCodes("0 copied", "1 error", "5 refused manifest", "130 interrupted"),
		Example:           "  podctl cp web:/etc/hosts .\n  podctl cp ./site web:/srv/ -c app",
		ValidArgsFunction: g.completeCopy,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("cp needs a source and a destination, one of them POD:PATH")
			}
			return runCopy(cmd.Context(), g, o, args[0], args[1])
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.container, "container", "c", "", "The container (default: the pod's default one, else the first)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "Say nothing")
	return cmd
}

// inContainer splits POD:PATH. A path that begins like one, or a name without a
// colon, is of this machine.
func inContainer(arg string) (pod, name string, ok bool) {
	pod, name, ok = strings.Cut(arg, ":")
	if !ok || pod == "" || strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/") {
		return "", arg, false
	}
	return pod, name, true
}

func runCopy(ctx context.Context, g *globals, o *copyOptions, from, to string) error {
	fromPod, source, out := inContainer(from)
	toPod, destination, in := inContainer(to)
	switch {
	case out == in:
		return usagef("one of the two must be POD:PATH, and the other a path of this machine")
	case source == "" || destination == "":
		return usagef("a path is missing after the pod")
	}
	d, err := g.runningPod(ctx, fromPod+toPod)
	if err != nil {
		return err
	}
	container, err := g.chosenContainer(d, &o.streamOptions)
	if err != nil {
		return err
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	files, err := engine.Sessions.Files(ctx, d, container)
	if err != nil {
		return err
	}
	c := &copying{g: g, quiet: o.quiet, began: g.env.Now()}
	if out {
		err = c.out(ctx, files.Root, source, destination)
	} else {
		err = c.in(ctx, files.Root, files.Owner, source, destination)
	}
	return errors.Join(err, files.Close())
}

// copying is one copy and how far it has come.
type copying struct {
	g            *globals
	quiet        bool
	began, shown time.Time
	files, bytes int64
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

func (c *copying) in(ctx context.Context, root *filecopy.Root, owner filecopy.Owner, source, destination string) (err error) {
	src, err := os.Open(source)
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

// baseName is the name that a copy of a path bears; the root has none of its own.
func baseName(name string) string {
	if base := path.Base(path.Clean("/" + name)); base != "/" {
		return base
	}
	return "root"
}

func (c *copying) copy(ctx context.Context, src, dir *os.File, name string, opts filecopy.Options) error {
	opts.Progress = c.progress
	opts.Skipped = func(name, why string) { c.g.note("note: %s is left out: %s", name, why) }
	err := filecopy.Copy(ctx, src, dir, name, opts)
	if c.quiet {
		return err
	}
	end := ""
	if c.g.env.ErrTTY {
		end = "\r\x1b[K"
	}
	if err == nil {
		fmt.Fprintf(c.g.env.Err, "%scopied %s in %.1fs\n", end, c.text(), c.g.env.Now().Sub(c.began).Seconds()) //nolint:errcheck // a courtesy
	}
	return err
}

// progressTick is how often the progress of a copy is drawn.
const progressTick = 200 * time.Millisecond

func (c *copying) progress(files, bytes int64) {
	c.files, c.bytes = files, bytes
	now := c.g.env.Now()
	if c.quiet || !c.g.env.ErrTTY || now.Sub(c.shown) < progressTick {
		return
	}
	c.shown = now
	fmt.Fprintf(c.g.env.Err, "\r\x1b[K    copying: %s", c.text()) //nolint:errcheck // a courtesy
}

func (c *copying) text() string {
	return counted(int(c.files), "file") + ", " + humanSize(c.bytes)
}
