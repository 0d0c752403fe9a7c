package lifecycle

import (
	"context"
	"errors"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
)

// pin prints manifests as they were written, with the digests of the images that
// the runtime has instead of tags.
func pin(ctx context.Context, sess *session.Session, manifests []string, recursive bool) error {
	for _, one := range manifests {
		if !input.IsManifest(one) {
			return exit.Usagef("--pin takes manifests, and %s is a pod: `podctl export %s` prints its manifest", one, one)
		}
	}
	if len(manifests) == 0 {
		return exit.Usagef("--pin needs a manifest")
	}
	m, err := load.Load(ctx, sess.Manifests(recursive), manifests...)
	if err != nil {
		return err
	}
	if err = errors.Join(m.Err(), selection.CheckNamespace(sess, m)); err != nil {
		return err
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	pins, err := engine.Images.Pin(ctx, m.Pods)
	if err != nil {
		return err
	}
	text, left, err := m.Pin(pins)
	if err != nil {
		return err
	}
	for _, name := range left {
		sess.IO.Note("note: %s is left out: its values are not printed; keep it beside the printed manifest", name)
	}
	_, err = sess.IO.Out.Write(text)
	return err
}
