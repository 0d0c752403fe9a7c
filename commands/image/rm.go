package image

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime/images"
)

type removeOptions struct{ force bool }

func newRemove(sess *session.Session) *cobra.Command {
	o := &removeOptions{}
	cmd := &cobra.Command{
		Use:     "rm [flags] IMAGE...",
		Aliases: []string{"remove"},
		Short:   "Remove images",
		Long: "Remove images by name, digest or ID. By a name, an image that has others loses this one and stays (on containerd;\n" +
			"other runtimes cannot do that). By its ID, it is removed with all its names. Images that a container was created\n" +
			"from, or that the runtime needs itself, are kept unless --force is given." +
			flags.ExitCodes("0 success", "1 error, or an image is in use"),
		Example:           "  podctl image rm registry.local/web:1.4\n  podctl image rm --force 4b7ce07a",
		ValidArgsFunction: completion.Of(sess.Flags).Images,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Usagef("image rm needs an image")
			}
			return remove(cmd.Context(), sess, o, args)
		},
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "Also remove images that are in use; running containers keep running")
	return cmd
}

func remove(ctx context.Context, sess *session.Session, o *removeOptions, names []string) error {
	engine, found, err := list(ctx, sess)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		img, err := images.Find(found, name)
		if err == nil && !o.force {
			err = inUse(img, name)
		}
		if err == nil {
			err = removeOne(ctx, sess, engine.Images, img, name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removeOne removes a name of an image that has others, or else the image.
func removeOne(ctx context.Context, sess *session.Session, store *images.Store, img *images.Image, name string) error {
	if len(img.OtherNames(name)) == 0 {
		if err := store.Remove(ctx, img); err != nil {
			return err
		}
		showRemoved(sess, img)
		return nil
	}
	others, err := store.Untag(ctx, img, name)
	if err != nil {
		return err
	}
	sess.IO.Print("removed %s", name)
	sess.IO.Note("note: the image stays, as %s", strings.Join(others, ", "))
	return nil
}

// inUse says who needs an image; nil when it can go.
func inUse(img *images.Image, name string) error {
	switch {
	case img.Pinned:
		return fmt.Errorf("image %s is pinned: the runtime needs it for every pod; use --force to remove it", name)
	case len(img.OtherNames(name)) > 0:
		return nil // Only a name goes, and what was made of the image does not need it.
	case len(img.UsedBy) > 1:
		return fmt.Errorf("image %s is used by %s and %d more: delete them first, or use --force", name, img.UsedBy[0], len(img.UsedBy)-1)
	case len(img.UsedBy) == 1:
		return fmt.Errorf("image %s is used by %s: delete the pod first, or use --force", name, img.UsedBy[0])
	}
	return nil
}

func showRemoved(sess *session.Session, img *images.Image) {
	for _, name := range img.Names() {
		sess.IO.Print("removed %s", name)
	}
	if len(img.Names()) == 0 {
		sess.IO.Print("removed %s", img.ID)
	}
	for _, pod := range img.NamedBy {
		sess.IO.Note("note: the manifest of pod %s names it: the next start pulls it again", pod)
	}
}
