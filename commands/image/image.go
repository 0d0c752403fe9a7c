package image

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
)

// New returns the command `podctl image`.
func New(sess *session.Session) *cobra.Command {
	all := newList(sess)
	cmd := &cobra.Command{
		Use:     "image COMMAND",
		Aliases: []string{"images"},
		Short:   "Manage images of the container runtime",
		Long:    "List, inspect, pull, load, save, tag and remove images of the container runtime.",
		Args:    flags.Subcommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.CalledAs() == "images" {
				return all.RunE(cmd, args)
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(
		all,
		newPull(sess),
		newLoad(sess),
		newSave(sess),
		newInspect(sess),
		newTag(sess),
		newRemove(sess),
		newPrune(sess),
	)
	return cmd
}

// list connects to the runtime and lists its images. It prints a note for each unreadable manifest of a pod.
func list(ctx context.Context, sess *session.Session) (*runtime.Engine, []*images.Image, error) {
	engine, err := sess.Engine()
	if err != nil {
		return nil, nil, err
	}
	found, unreadable, err := engine.Images.List(ctx)
	for _, one := range unreadable {
		sess.IO.Note("note: %v", one)
	}
	return engine, found, err
}

// find finds images by name.
func find(ctx context.Context, sess *session.Session, names ...string) (*runtime.Engine, []*images.Image, error) {
	engine, all, err := list(ctx, sess)
	var found []*images.Image
	for _, name := range names {
		if err != nil {
			break
		}
		var img *images.Image
		img, err = images.Find(all, name)
		found = append(found, img)
	}
	return engine, found, err
}

func newTag(sess *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "tag [flags] SOURCE TARGET",
		Short: "Add a name to an image",
		Long: "Add a name to an image. " +
			"If another image has that name, the name moves to this one. " +
			"Containers that were created from\nthe other image keep it. " +
			"This needs containerd, because the CRI has no call for it." +
			flags.ExitCodes("0 success", "1 error, or the runtime is not containerd"),
		Example:           "  podctl image tag registry.local/web:1.5 registry.local/web:stable",
		ValidArgsFunction: completion.Of(sess.Flags).Images,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return exit.Usagef("image tag needs an image and its new name")
			}
			engine, found, err := find(cmd.Context(), sess, args[0])
			if err != nil {
				return err
			}
			name, err := engine.Images.Tag(cmd.Context(), found[0], args[1])
			if err != nil {
				return err
			}
			sess.IO.Print("tagged %s as %s", found[0].Name(), name)
			return nil
		},
	}
}

func newInspect(sess *session.Session) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "inspect [flags] IMAGE...",
		Short: "Print details of images as JSON or YAML",
		Long: "Print the names, size and users of images, and their configuration: " +
			"platform, command, environment, user, labels,\nlayers and history." +
			flags.ExitCodes("0 success", "1 error"),
		Example: "  podctl image inspect registry.local/web:1.5\n" +
			"  podctl image inspect web:1.5 | jq .config.config.Cmd",
		ValidArgsFunction: completion.Of(sess.Flags).Images,
		Args:              flags.Needs("an image"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return inspect(cmd.Context(), sess, output, args)
		},
	}
	cmd.Flags().VarP(&flags.Choice{Value: &output, Allowed: []string{"json", "yaml"}, Start: "json"}, "output", "o",
		"Output format: json or yaml")
	return cmd
}

// imageDocument is the output of `image inspect` for one image.
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
