package image

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
)

func newSave(sess *session.Session) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "save [flags] IMAGE...",
		Short: "Save images to an archive",
		Long: "Write images to an OCI archive, which podctl image load and docker load can read. Of a multi-platform image, this\n" +
			"machine's platform is saved. This needs containerd, as the CRI has no call for it." +
			flags.ExitCodes("0 success", "1 error, or the runtime is not containerd", "130 interrupted"),
		Example:           "  podctl image save registry.local/web:1.5 -o web.tar\n  podctl image save web:1.5 | ssh edge podctl image load -",
		ValidArgsFunction: completion.Of(sess.Flags).Images,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Usagef("image save needs an image")
			}
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
