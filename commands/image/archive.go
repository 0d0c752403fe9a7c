package image

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime"
)

func newLoad(sess *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "load [flags] ARCHIVE...",
		Short: "Load images from archives",
		Long: "Load images from archives in Docker or OCI format, compressed or not, as docker save, podman save, " +
			"skopeo or podctl\nimage save write them. " +
			"Use - to read standard input. " +
			"This needs containerd, because the CRI has no call for it." +
			flags.ExitCodes("0 success", "1 error, or the runtime is not containerd", "130 interrupted"),
		Example: "  podctl image load web.tar\n  docker save web:1.5 | podctl image load -",
		Args:    flags.Needs("an archive, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			engine, err := sess.Engine()
			if err != nil {
				return err
			}
			var errs []error
			for _, path := range args {
				errs = append(errs, load(cmd.Context(), sess, engine, path))
			}
			return errors.Join(errs...)
		},
	}
}

func load(ctx context.Context, sess *session.Session, engine *runtime.Engine, path string) error {
	archive, name := sess.IO.In, "standard input"
	if path != "-" {
		f, err := input.OpenNamed(ctx, path)
		if err != nil {
			return fmt.Errorf("loading images: %w", err)
		}
		defer f.Close() //nolint:errcheck // the file was only read
		archive, name = f, path
	}
	spinner := sess.IO.Spin("loading " + name)
	names, err := engine.Images.Load(ctx, archive)
	spinner.Stop()
	if err != nil {
		return fmt.Errorf("loading %s: %w", name, err)
	}
	for _, one := range names {
		sess.IO.Print("loaded %s", one)
	}
	return nil
}

func newSave(sess *session.Session) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "save [flags] IMAGE...",
		Short: "Save images to an archive",
		Long: "Save images to an OCI archive that podctl image load and docker load can read. " +
			"For a multi-platform image, only this\nmachine's platform is saved. " +
			"This needs containerd, because the CRI has no call for it." +
			flags.ExitCodes("0 success", "1 error, or the runtime is not containerd", "130 interrupted"),
		Example: "  podctl image save registry.local/web:1.5 -o web.tar\n" +
			"  podctl image save web:1.5 | ssh edge podctl image load -",
		ValidArgsFunction: completion.Of(sess.Flags).Images,
		Args:              flags.Needs("an image"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return save(cmd.Context(), sess, args, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "-", "Output file (-: standard output)")
	return cmd
}

func save(ctx context.Context, sess *session.Session, names []string, path string) error {
	if path == "-" && sess.IO.OutTTY {
		return exit.Usagef("refusing to write an archive to a terminal: use -o FILE or a pipe")
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	spinner := sess.IO.Spin("saving " + view.Count(len(names), "image"))
	err = sess.IO.Into(path, func(out io.Writer) error { return engine.Images.Save(ctx, out, names) })
	spinner.Stop()
	if err != nil {
		return fmt.Errorf("saving images: %w", err)
	}
	return nil
}
