package commands

import (
	"context"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
)

// pin prints manifests as they were written, with the digests of the images that
// the runtime has in the place of their tags.
func (g *globals) pin(ctx context.Context, manifests []string) error {
	for _, one := range manifests {
		if !input.IsManifest(one) {
			return usagef("--pin takes manifests, and %s is a pod: `podctl export %s` prints its manifest", one, one)
		}
	}
	if len(manifests) == 0 {
		return usagef("--pin needs a manifest")
	}
	m, err := load.Load(ctx, input.Reader{Stdin: g.env.In}, manifests...)
	if err != nil {
		return err
	}
	if err = m.Err(); err != nil {
		return err
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	pins, err := engine.PinImages(ctx, m.Pods)
	if err != nil {
		return err
	}
	text, left, err := m.Pin(pins)
	if err != nil {
		return err
	}
	for _, name := range left {
		g.note("note: %s is left out: its values are not for the output; keep it beside what is printed", name)
	}
	_, err = g.env.Out.Write(text)
	return err
}
