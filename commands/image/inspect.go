package image

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
)

func newInspect(sess *session.Session) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "inspect [flags] IMAGE...",
		Short: "Show details of images as a document",
		Long: "Print images with their names, size and users, and with their configuration: platform, command, environment, user,\n" +
			"labels, layers and history." +
			flags.ExitCodes("0 success", "1 error"),
		Example:           "  podctl image inspect registry.local/web:1.5\n  podctl image inspect web:1.5 | jq .config.config.Cmd",
		ValidArgsFunction: completion.Of(sess.Flags).Images,
		Args:              flags.Needs("an image"),
		RunE:              func(cmd *cobra.Command, args []string) error { return inspect(cmd.Context(), sess, output, args) },
	}
	cmd.Flags().VarP(&flags.Choice{Value: &output, Allowed: []string{"json", "yaml"}, Start: "json"}, "output", "o", "Output format: json or yaml")
	return cmd
}

// imageDocument is `image inspect` of one image.
type imageDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	*images.Details
}

func inspect(ctx context.Context, sess *session.Session, output string, names []string) error {
	engine, found, err := find(ctx, sess, names...)
	if err != nil {
		return err
	}
	docs := make([]imageDocument, 0, len(names))
	for _, img := range found {
		details, err := engine.Images.Inspect(ctx, img)
		if err != nil {
			return err
		}
		docs = append(docs, imageDocument{model.APIVersion, "Image", details})
	}
	var value any = docs[0]
	if len(docs) > 1 {
		value = view.List("ImageList", docs)
	}
	return terminal.WriteDocument(sess.IO.Out, cmp.Or(output, "json"), value)
}
