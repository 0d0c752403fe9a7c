package image

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/images"
)

type pruneOptions struct {
	dryRun bool
	output string
}

func newPrune(sess *session.Session) *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune [flags]",
		Short: "Remove unused images",
		Long: "Remove the images that no container, running or not, was created from, that no applied manifest names, and that the\n" +
			"runtime does not need itself." +
			flags.ExitCodes("0 success", "1 error"),
		Example: "  podctl image prune --dry-run\n  podctl image prune",
		Args:    flags.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return prune(cmd.Context(), sess, o) },
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only show what would be removed")
	cmd.Flags().VarP(flags.Output(&o.output, "json", "yaml", "name"), "output", "o", "Output format: text, json, yaml or name")
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
		return fmt.Errorf("the images that are needed are not known: %w", errors.Join(unreadable...))
	}
	found = slices.DeleteFunc(found, func(img *images.Image) bool { return !img.Unused() })
	if len(found) == 0 && terminal.IsText(o.output) {
		sess.IO.Note("Every image is needed.")
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
