package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/image"
)

func newImage(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "image COMMAND",
		Aliases: []string{"images"},
		Short:   "The images of the container runtime",
		Long:    "List, pull, load, save and remove the images of the container runtime.",
		Args:    unknownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImageList(g), newImagePull(g), newImageLoad(g), newImageSave(g), newImageRemove(g), newImagePrune(g))
	return cmd
}

func newImageList(g *globals) *cobra.Command {
	v := &imageView{}
	cmd := &cobra.Command{
		Use:     "ls [flags]",
		Aliases: []string{"list"},
		Short:   "List images, and who uses them",
		Long: "List the images of the runtime with the pods that use them: those with a container of the image, running or\n" +
			"not, and those that podctl applied and whose manifests name it." + exitCodes("0 done", "1 error"),
		Example: "  podctl image ls\n  podctl image ls --digests\n  podctl image ls -o json | jq '.items[] | select(.usedBy == null)'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, images, err := g.images(cmd.Context())
			if err != nil {
				return err
			}
			return v.write(g.env.Out, images)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&v.digests, "digests", false, "Show digests in full")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "Only ids")
	f.VarP(outputFlag(&v.output, "json", "yaml", "name"), "output", "o", "Output format: text, json, yaml or name")
	return cmd
}

// images connects to the runtime and lists its images. That some pods' manifests
// cannot be read is worth a note.
func (g *globals) images(ctx context.Context) (*runtime.Engine, []*runtime.Image, error) {
	engine, err := g.connect()
	if err != nil {
		return nil, nil, err
	}
	images, unreadable, err := engine.Images(ctx)
	for _, one := range unreadable {
		g.note("note: %v", one)
	}
	return engine, images, err
}

func newImagePull(g *globals) *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "pull [flags] IMAGE|MANIFEST...",
		Short: "Pull images",
		Long: "Pull images: those named, and all those of the pods of a manifest. Credentials come from the manifest's pull\n" +
			"secrets, docker's config.json and its credential helpers, and podman's auth.json; never from the command line." +
			exitCodes("0 pulled", "1 error", "5 refused manifest", "130 interrupted"),
		Example:           "  podctl image pull docker.io/library/nginx:1.29\n  podctl image pull -f pod.yaml",
		ValidArgsFunction: g.completePulls,
		RunE: func(cmd *cobra.Command, args []string) error {
			requests, err := g.imageRequests(cmd.Context(), files, args)
			if err != nil {
				return err
			}
			engine, err := g.connect()
			if err != nil {
				return err
			}
			var errs []error
			for _, r := range requests {
				errs = append(errs, g.pullImage(cmd.Context(), engine, r))
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "Manifest whose images are pulled: file, directory, URL or - (repeatable)")
	return cmd
}

// imageRequests are the images that are named, and those of manifests.
func (g *globals) imageRequests(ctx context.Context, files, args []string) ([]image.Request, error) {
	var requests []image.Request
	manifests := slices.Clone(files)
	for _, arg := range args {
		if input.IsManifest(arg) {
			manifests = append(manifests, arg)
			continue
		}
		requests = append(requests, image.Request{Image: arg})
	}
	pods, err := g.load(ctx, manifests, selection{quiet: true})
	if err != nil {
		return nil, err
	}
	for _, d := range pods {
		requests = append(requests, runtime.ImageRequests(d)...)
	}
	if len(requests) == 0 {
		return nil, usagef("image pull needs an image or a manifest")
	}
	return requests, nil
}

func (g *globals) pullImage(ctx context.Context, engine *runtime.Engine, r image.Request) error {
	began := g.env.Now()
	w := g.wait("pulling " + r.Image)
	info, err := engine.PullImage(ctx, r, func(p runtime.PullProgress) {
		w.tell(fmt.Sprintf("%s of %s so far, %s", humanSize(p.Done), humanSize(p.Total), counted(p.Parts, "part")))
	})
	w.end()
	if err != nil {
		return err
	}
	g.print("pulled %s  %s  %s  %.1fs", r.Image, shortDigest(digestOf(&info)), humanSize(int64(info.Size)), g.env.Now().Sub(began).Seconds())
	return nil
}

// digestOf is the digest by which the image was pulled, or else its id.
func digestOf(info *image.Info) string {
	if pin, err := info.Pin(info.Reference); err == nil {
		_, _, digest := image.Parts(pin)
		return digest
	}
	return info.ID
}
