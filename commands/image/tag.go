package image

import (
	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime/images"
)

func newTag(sess *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "tag [flags] SOURCE TARGET",
		Short: "Give an image another name",
		Long: "Give an image another name. A name that another image has goes over to this one; containers that were created from\n" +
			"the other keep it. This needs containerd, as the CRI has no call for it." +
			flags.ExitCodes("0 success", "1 error, or the runtime is not containerd"),
		Example:           "  podctl image tag registry.local/web:1.5 registry.local/web:stable",
		ValidArgsFunction: completion.Of(sess.Flags).Images,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return exit.Usagef("image tag needs an image and its new name")
			}
			engine, found, err := list(cmd.Context(), sess)
			if err != nil {
				return err
			}
			img, err := images.Find(found, args[0])
			if err != nil {
				return err
			}
			name, err := engine.Images.Tag(cmd.Context(), img, args[1])
			if err != nil {
				return err
			}
			sess.IO.Print("tagged %s as %s", img.Name(), name)
			return nil
		},
	}
}
