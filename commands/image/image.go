package image

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/images"
)

// New is `podctl image`.
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
	cmd.AddCommand(all, newPull(sess), newLoad(sess), newSave(sess), newInspect(sess), newTag(sess), newRemove(sess), newPrune(sess))
	return cmd
}

// list connects to the runtime and lists its images. That some pods' manifests
// cannot be read is worth a note.
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
