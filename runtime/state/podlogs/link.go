package podlogs

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// linkNameMax is the length in bytes at which the name of a log link is truncated, without its suffix (kubelet:
// legacyLogSymlink).
const linkNameMax = 251

// LinkPath returns the path of the link through which log shippers find a container's log, or "" if there are no such
// links.
func (l Logs) LinkPath(container, containerID string) (string, error) {
	err := statedir.FirstError(
		statedir.CheckName(statedir.KindNamespace, l.Namespace),
		statedir.CheckName(statedir.KindPod, l.Name),
		statedir.CheckName(statedir.KindContainer, container),
		statedir.CheckName(statedir.KindID, containerID),
	)
	if err != nil || l.Roots.Links == "" {
		return "", err
	}
	base := fmt.Sprintf("%s_%s_%s-%s", l.Name, l.Namespace, container, containerID)
	return filepath.Join(l.Roots.Links, base[:min(len(base), linkNameMax)]+".log"), nil
}

// Link creates the link to a container's log. It does nothing if there is no log, because a container may write
// elsewhere. The link is a convenience, so a failure must not fail the container.
func (l Logs) Link(container, containerID string, attempt uint32) error {
	target, err := l.File(container, attempt)
	if err == nil && !l.has(container, filepath.Base(target)) {
		return nil
	}
	link := ""
	if err == nil {
		link, err = l.LinkPath(container, containerID)
	}
	if err == nil && link != "" {
		err = symlink(l.Roots.Links, target, filepath.Base(link))
	}
	return safefs.Wrapf(err, "linking the log of container %s", container)
}

// has reports whether a container has a log with this name.
func (l Logs) has(container, log string) (has bool) {
	_ = l.in(container, func(dir *safefs.Dir) error {
		_, err := dir.Lstat(log)
		has = err == nil
		return nil
	})
	return has
}

// symlink creates a link in a directory and replaces another link.
func symlink(root, target, link string) error {
	dir, err := statedir.MakeLogDir(root, statedir.LogDirMode, statedir.LogDirMode)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	if now, err := dir.Readlink(link); err == nil && now == target {
		return nil
	}
	if err := dir.Remove(link); err != nil {
		return err
	}
	return dir.Symlink(target, link)
}

// removeAllLinks removes the links to the pod's logs, which would dangle.
func (l Logs) removeAllLinks() error {
	own, err := l.base()
	if err != nil {
		return err
	}
	return l.Roots.removeLinks(func(target string) bool {
		rest, below := strings.CutPrefix(target, l.Roots.Logs+string(filepath.Separator))
		base, _, within := strings.Cut(rest, string(filepath.Separator))
		return below && within && (base == own || l.isKubelets(base))
	})
}

// removeLinks removes the links for whose target goes returns true.
func (r Roots) removeLinks(goes func(target string) bool) error {
	if r.Links == "" {
		return nil
	}
	return inDir(r.Links, func(dir *safefs.Dir) error {
		entries, err := dir.Entries()
		for _, entry := range entries {
			if target, readErr := dir.Readlink(entry.Name()); readErr == nil && goes(target) {
				err = errors.Join(err, dir.Remove(entry.Name()))
			}
		}
		return err
	})
}

// inDir calls work with a log directory. A missing directory is not an error.
func inDir(path string, work func(dir *safefs.Dir) error) error {
	dir, err := statedir.OpenLogDir(path)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	return errors.Join(work(dir), dir.Close())
}
