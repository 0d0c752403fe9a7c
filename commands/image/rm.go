package image

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/images"
)

type removeOptions struct{ force bool }

func newRemove(sess *session.Session) *cobra.Command {
	o := &removeOptions{}
	cmd := &cobra.Command{
		Use:     "rm [flags] IMAGE...",
		Aliases: []string{"remove"},
		Short:   "Remove images",
		Long: "Remove images by name, digest or ID. " +
			"If an image has several names, removing it by one name removes only that name (on\ncontainerd; " +
			"other runtimes cannot do that). " +
			"Removing it by ID removes all its names. " +
			"Images that a container\nor the runtime itself uses are kept unless --force is given." +
			flags.ExitCodes("0 success", "1 error, or an image is in use"),
		Example:           "  podctl image rm registry.local/web:1.4\n  podctl image rm --force 4b7ce07a",
		ValidArgsFunction: completion.Of(sess.Flags).Images,
		Args:              flags.Needs("an image"),
		RunE:              flags.Run(sess, o, remove),
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

// removeOne removes one name of an image with several names, or else the image.
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
	sess.IO.Note("note: the image is still available as %s", strings.Join(others, ", "))
	return nil
}

// inUse returns the reason why an image is in use; nil if it can be removed.
func inUse(img *images.Image, name string) error {
	switch {
	case img.Pinned:
		return fmt.Errorf("image %s is pinned: the runtime needs it for every pod; use --force to remove it", name)
	case len(img.OtherNames(name)) > 0:
		return nil // Only a name is removed, and containers do not depend on it.
	case len(img.UsedBy) > 1:
		return fmt.Errorf("image %s is used by %s and %d more: delete them first, or use --force",
			name, img.UsedBy[0], len(img.UsedBy)-1)
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
		sess.IO.Note("note: the manifest of pod %s uses this image: the next start pulls it again", pod)
	}
}

type pruneOptions struct {
	dryRun bool
	output string
}

func newPrune(sess *session.Session) *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune [flags]",
		Short: "Remove unused images",
		Long: "Remove unused images: no container uses them, running or not, " +
			"no applied manifest names them, and the runtime does\nnot need them for its sandboxes." +
			flags.ExitCodes("0 success", "1 error"),
		Example: "  podctl image prune --dry-run\n  podctl image prune",
		Args:    flags.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return prune(cmd.Context(), sess, o) },
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only show what would be removed")
	cmd.Flags().VarP(flags.Output(&o.output, "json", "yaml", "name"), "output", "o",
		"Output format: text, json, yaml or name")
	return cmd
}

func prune(ctx context.Context, sess *session.Session, o *pruneOptions) error {
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	found, unreadable, err := engine.Images.List(ctx)
	if err != nil {
		return err
	}
	if len(unreadable) > 0 {
		return fmt.Errorf("cannot determine which images are in use: %w", errors.Join(unreadable...))
	}
	found = slices.DeleteFunc(found, func(img *images.Image) bool { return !img.Unused() })
	if len(found) == 0 && terminal.IsText(o.output) {
		sess.IO.Note("No unused images.")
		return nil
	}
	var errs []error
	if !o.dryRun {
		found = slices.DeleteFunc(found, func(img *images.Image) bool {
			err := engine.Images.Remove(ctx, img)
			errs = append(errs, err)
			return err != nil
		})
	}
	list := &imageView{output: o.output}
	errs = append(errs, list.write(sess.IO.Out, found))
	if terminal.IsText(o.output) {
		verb := "Removed"
		if o.dryRun {
			verb = "Would remove"
		}
		sess.IO.Print("\n%s %s, %s.", verb, view.Count(len(found), "image"), view.Size(totalSize(found)))
	}
	return errors.Join(errs...)
}

func totalSize(found []*images.Image) (sum int64) {
	for _, img := range found {
		sum += int64(img.Size)
	}
	return sum
}
