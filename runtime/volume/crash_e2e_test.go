//go:build e2e

package volume

import (
	"github.com/podctl/podctl/podspec"
)

// bindAll binds a subPath of every volume.
func bindAll(c Context) error {
	ref := podspec.RegularContainers(c.Desired.Pod)[0]
	for i, sub := range []string{"always", "sub/dir"} {
		if _, err := PrepareSubPath(c, ref, i, sub); err != nil {
			return err
		}
	}
	return nil
}
