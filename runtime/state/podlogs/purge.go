package podlogs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/safefs"
)

// Purge removes archived logs, the logs of pods, and links to logs that are gone.
func (r Roots) Purge(pods []types.UID) error {
	errs := []error{os.RemoveAll(Deleted{r}.Dir())}
	entries, err := os.ReadDir(r.Logs)
	errs = append(errs, safefs.IgnoreMissing(err))
	for _, entry := range entries {
		for _, uid := range pods {
			if strings.HasSuffix(entry.Name(), "_"+string(uid)) {
				errs = append(errs, os.RemoveAll(filepath.Join(r.Logs, entry.Name())))
			}
		}
	}
	if r.Links == "" {
		return errors.Join(errs...)
	}
	links, err := os.ReadDir(r.Links)
	errs = append(errs, safefs.IgnoreMissing(err))
	for _, link := range links {
		path := filepath.Join(r.Links, link.Name())
		target, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(target, r.Logs+"/") {
			continue
		}
		if _, err = os.Stat(target); errors.Is(err, os.ErrNotExist) {
			errs = append(errs, safefs.RemoveFile(path))
		}
	}
	return errors.Join(errs...)
}
