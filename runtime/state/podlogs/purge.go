package podlogs

import (
	"errors"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/safefs"
)

// Purge removes archived logs, the logs of these pods, and links to missing logs.
func (r Roots) Purge(pods []types.UID) error {
	err := inDir(r.Logs, func(root *safefs.Dir) error {
		entries, err := root.Entries()
		for _, entry := range entries {
			ofPod := func(uid types.UID) bool { return strings.HasSuffix(entry.Name(), "_"+string(uid)) }
			if entry.Name() == deletedName || slices.ContainsFunc(pods, ofPod) {
				err = errors.Join(err, root.RemoveAll(entry.Name()))
			}
		}
		return err
	})
	return errors.Join(err, r.removeLinks(func(target string) bool {
		_, err := os.Stat(target)
		return strings.HasPrefix(target, r.Logs+"/") && errors.Is(err, os.ErrNotExist)
	}))
}
