package image

import (
	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
)

func newList(sess *session.Session) *cobra.Command {
	v := &imageView{}
	cmd := &cobra.Command{
		Use:     "ls [flags]",
		Aliases: []string{"list"},
		Short:   "List images and the pods that use them",
		Long: "List the images of the runtime and the pods that use them: pods with a container of the image, running or not, and\n" +
			"applied pods whose manifest names it." +
			flags.ExitCodes("0 success", "1 error"),
		Example: "  podctl image ls\n  podctl image ls --digests\n  podctl image ls -o json | jq '.items[] | select(.usedBy == null)'",
		Args:    flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, images, err := list(cmd.Context(), sess)
			if err != nil {
				return err
			}
			return v.write(sess.IO.Out, images)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&v.digests, "digests", false, "Show full digests")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "Print only IDs")
	f.VarP(flags.Output(&v.output, "json", "yaml", "name"), "output", "o", "Output format: text, json, yaml or name")
	return cmd
}
