package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/images"
)

func newPull(sess *session.Session) *cobra.Command {
	var manifests selection.Selection
	cmd := &cobra.Command{
		Use:   "pull [flags] IMAGE|MANIFEST...",
		Short: "Pull images",
		Long: "Pull images, and all images of the pods in a manifest. " +
			"Credentials come from the manifest's pull secrets, " +
			"from\nDocker's config.json and its credential helpers, and from Podman's auth.json, " +
			"never from the command line." +
			flags.ExitCodes("0 success", "1 error", "5 manifest refused", "130 interrupted"),
		Example:           "  podctl image pull docker.io/library/nginx:1.29\n  podctl image pull -f pod.yaml",
		ValidArgsFunction: completion.Of(sess.Flags).Pulls,
		RunE: func(cmd *cobra.Command, args []string) error {
			requests, err := requests(cmd.Context(), sess, manifests, args)
			if err != nil {
				return err
			}
			engine, err := sess.Engine()
			if err != nil {
				return err
			}
			var errs []error
			for _, r := range requests {
				errs = append(errs, pull(cmd.Context(), sess, engine, r))
			}
			return errors.Join(errs...)
		},
	}
	flags.Files(cmd, &manifests.Files, &manifests.Recursive)
	return cmd
}

// requests returns the images in the arguments, and those of the manifests.
func requests(
	ctx context.Context, sess *session.Session, s selection.Selection, args []string,
) ([]images.Request, error) {
	var requests []images.Request
	for _, arg := range args {
		if input.IsManifest(arg) {
			s.Files = append(s.Files, arg)
			continue
		}
		requests = append(requests, images.Request{Image: arg})
	}
	if s.Manifests() {
		pods, err := s.Pods(ctx, sess)
		if err != nil {
			return nil, err
		}
		for _, d := range pods {
			requests = append(requests, images.Requests(d)...)
		}
	}
	if len(requests) == 0 {
		return nil, exit.Usagef("image pull needs an image or a manifest")
	}
	return requests, nil
}

func pull(ctx context.Context, sess *session.Session, engine *runtime.Engine, r images.Request) error {
	began := sess.IO.Now()
	spinner := sess.IO.Spin("pulling " + r.Image)
	info, err := engine.Images.Pull(ctx, r, func(p images.PullProgress) {
		done, total, parts := view.Size(p.Done), view.Size(p.Total), view.Count(p.Parts, "part")
		spinner.Progress(fmt.Sprintf("%s of %s so far, %s", done, total, parts))
	})
	spinner.Stop()
	if err != nil {
		return err
	}
	sess.IO.Print("pulled %s  %s  %s  %.1fs",
		r.Image, shortDigest(digestOf(&info)), view.Size(int64(info.Size)), sess.IO.Now().Sub(began).Seconds())
	return nil
}

// digestOf returns the digest by which the image was pulled, or else its id.
func digestOf(info *images.Info) string {
	if pin, err := info.Pin(info.Reference); err == nil {
		_, _, digest := images.Parts(pin)
		return digest
	}
	return info.ID
}
