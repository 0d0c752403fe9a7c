package image

import (
	"cmp"
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
		Long: "Remove images by name, digest or ID. An image is removed with all its names, as container runtimes cannot remove one\n" +
			"of them. Images that have other names, that a container was created from, or that the runtime needs itself are kept\n" +
			"unless --force is given." +
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
	cmd.Flags().BoolVar(&o.force, "force", false, "Also remove images that are in use or have other names; running containers keep running")
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
			err = cmp.Or(inUse(img, name), hasOthers(img, name))
		}
		if err == nil {
			err = engine.Images.Remove(ctx, img)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		showRemoved(sess, img)
	}
	return errors.Join(errs...)
}

// inUse says who needs an image; nil when it can go.
func inUse(img *images.Image, name string) error {
	switch {
	case img.Pinned:
		return fmt.Errorf("image %s is pinned: the runtime needs it for every pod; use --force to remove it", name)
	case len(img.UsedBy) > 1:
		return fmt.Errorf("image %s is used by %s and %d more: delete them first, or use --force", name, img.UsedBy[0], len(img.UsedBy)-1)
	case len(img.UsedBy) == 1:
		return fmt.Errorf("image %s is used by %s: delete the pod first, or use --force", name, img.UsedBy[0])
	}
	return nil
}

// hasOthers refuses to remove an image by one of several names: the others would be removed
// too, and the user may not know of them.
func hasOthers(img *images.Image, name string) error {
	if others := img.OtherNames(name); len(others) > 0 {
		return fmt.Errorf("image %s has other names, which would go with it: %s; remove it by its id %s, or use --force",
			name, strings.Join(others, ", "), shortDigest(img.ID))
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
