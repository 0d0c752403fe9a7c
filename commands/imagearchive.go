package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/safefs"
)

func newImageLoad(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "load [flags] ARCHIVE...",
		Short: "Load images from archives",
		Long: "Load the images of archives, as docker save, podman save, skopeo and podctl image save write them: of docker's\n" +
			"or the OCI's form, compressed or not. - is standard input. Only containerd can: the CRI has no call for it." +
			exitCodes("0 loaded", "1 error, or the runtime is another", "130 interrupted"),
		Example: "  podctl image load web.tar\n  docker save web:1.5 | podctl image load -",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("image load needs an archive, or - for standard input")
			}
			engine, err := g.connect()
			if err != nil {
				return err
			}
			var errs []error
			for _, path := range args {
				errs = append(errs, g.loadImages(cmd.Context(), engine, path))
			}
			return errors.Join(errs...)
		},
	}
}

func (g *globals) loadImages(ctx context.Context, engine *runtime.Engine, path string) error {
	archive, name := g.env.In, "standard input"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("loading images: %w", err)
		}
		defer f.Close() //nolint:errcheck // a file that was only read
		archive, name = f, path
	}
	w := g.wait("loading " + name)
	names, err := engine.Images.Load(ctx, archive)
	w.end()
	if err != nil {
		return fmt.Errorf("loading %s: %w", name, err)
	}
	for _, one := range names {
		g.print("loaded %s", one)
	}
	return nil
}

func newImageSave(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "save [flags] IMAGE...",
		Short: "Save images to an archive",
		Long: "Write images to an archive of the OCI's form, which podctl image load and docker load read. Of an image for\n" +
			"several platforms it has this machine's. Only containerd can: the CRI has no call for it." +
			exitCodes("0 saved", "1 error, or the runtime is another", "130 interrupted"),
		Example:           "  podctl image save registry.local/web:1.5 -o web.tar\n  podctl image save web:1.5 | ssh edge podctl image load -",
		ValidArgsFunction: g.completeImages,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("image save needs an image")
			}
			return g.saveImages(cmd.Context(), args, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "-", "File to write; - is standard output")
	return cmd
}

func (g *globals) saveImages(ctx context.Context, names []string, path string) error {
	if path == "-" && g.env.OutTTY {
		return usagef("an archive is not for a terminal: name a file with -o, or send it on by a pipe")
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	w := g.wait("saving " + counted(len(names), "image"))
	err = g.intoFile(path, func(out io.Writer) error { return engine.Images.Save(ctx, out, names) })
	w.end()
	if err != nil {
		return fmt.Errorf("saving images: %w", err)
	}
	return nil
}

// intoFile writes a file as a whole or not at all, for its owner alone; - is standard
// output. A device or a pipe is written to and not replaced.
func (g *globals) intoFile(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(g.env.Out)
	}
	f, err := safefs.Create(path)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Commit()
	}
	return errors.Join(err, f.Close())
}
