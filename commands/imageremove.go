package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/runtime/images"
)

type imageRemoveOptions struct{ force bool }

func newImageRemove(g *globals) *cobra.Command {
	o := &imageRemoveOptions{}
	cmd := &cobra.Command{
		Use:     "rm [flags] IMAGE...",
		Aliases: []string{"remove"},
		Short:   "Remove images",
		Long: "Remove images by name, digest or id. An image goes with all its names: container runtimes have no call that\n" +
			"takes away one of them. One with other names, one that a container was made of, and one that the runtime needs\n" +
			"itself is kept." +
			exitCodes("0 removed", "1 error, or an image is in use"),
		Example:           "  podctl image rm registry.local/web:1.4\n  podctl image rm --force 4b7ce07a",
		ValidArgsFunction: g.completeImages,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("image rm needs an image")
			}
			return g.removeImages(cmd.Context(), o, args)
		},
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "Remove images that are in use, and those with other names: what runs goes on running")
	return cmd
}

func (g *globals) removeImages(ctx context.Context, o *imageRemoveOptions, names []string) error {
	engine, found, err := g.images(ctx)
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
		g.showRemoved(img)
	}
	return errors.Join(errs...)
}

// inUse says who needs an image; nil when it can go.
func inUse(img *images.Image, name string) error {
	switch {
	case img.Pinned:
		return fmt.Errorf("image %s is pinned: the runtime needs it for every pod; --force removes it all the same", name)
	case len(img.UsedBy) > 1:
		return fmt.Errorf("image %s is used by %s and %d more: delete them first, or use --force", name, img.UsedBy[0], len(img.UsedBy)-1)
	case len(img.UsedBy) == 1:
		return fmt.Errorf("image %s is used by %s: delete the pod first, or use --force", name, img.UsedBy[0])
	}
	return nil
}

// hasOthers refuses to remove an image by one of several names: the others would
// go with it, and whoever asked may not know of them.
func hasOthers(img *images.Image, name string) error {
	if others := img.OtherNames(name); len(others) > 0 {
		return fmt.Errorf("image %s has other names, which would go with it: %s; remove it by its id %s, or use --force",
			name, strings.Join(others, ", "), shortDigest(img.ID))
	}
	return nil
}

func (g *globals) showRemoved(img *images.Image) {
	for _, name := range img.Names() {
		g.print("removed %s", name)
	}
	if len(img.Names()) == 0 {
		g.print("removed %s", img.ID)
	}
	for _, pod := range img.NamedBy {
		g.note("note: the manifest of pod %s names it: the next start pulls it again", pod)
	}
}

func newImagePrune(g *globals) *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune [flags]",
		Short: "Remove the images that nobody needs",
		Long: "Remove every image of which there is no container, running or not, that no manifest names which podctl applied,\n" +
			"and that the runtime does not need itself." + exitCodes("0 done", "1 error"),
		Example: "  podctl image prune --dry-run\n  podctl image prune",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return g.pruneImages(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only show what would be removed")
	cmd.Flags().VarP(outputFlag(&o.output, "json", "yaml", "name"), "output", "o", "Output format: text, json, yaml or name")
	return cmd
}

func (g *globals) pruneImages(ctx context.Context, o *pruneOptions) error {
	engine, err := g.connect()
	if err != nil {
		return err
	}
	found, unreadable, err := engine.Images.List(ctx)
	if err != nil {
		return err
	}
	if len(unreadable) > 0 {
		return fmt.Errorf("nobody can say which images are needed: %w", errors.Join(unreadable...))
	}
	found = slices.DeleteFunc(found, func(img *images.Image) bool { return !img.Unused() })
	if len(found) == 0 && isText(o.output) {
		g.note("Every image is needed.")
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
	view := &imageView{output: o.output}
	errs = append(errs, view.write(g.env.Out, found))
	if !isText(o.output) {
		return errors.Join(errs...)
	}
	g.print("\n%s %s, %s.", o.verb(), counted(len(found), "image"), humanSize(totalSize(found)))
	return errors.Join(errs...)
}

func totalSize(found []*images.Image) (sum int64) {
	for _, img := range found {
		sum += int64(img.Size)
	}
	return sum
}
