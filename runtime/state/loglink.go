package state

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
)

// linkNameMax is the length at which the name of a log link is cut, in bytes and
// without its ending (kubelet: legacyLogSymlink).
const linkNameMax = 251

// link is the link through which log shippers find the log of a container; ""
// when there are no such links.
func (l PodLogs) link(container, containerID string) (string, error) {
	err := firstError(checkName(kindNamespace, l.namespace), checkName(kindPod, l.name), checkName(kindContainer, container), checkName(kindID, containerID))
	if err != nil || l.pod.layout.ContainerLogRoot == "" {
		return "", err
	}
	base := fmt.Sprintf("%s_%s_%s-%s", l.name, l.namespace, container, containerID)
	return filepath.Join(l.pod.layout.ContainerLogRoot, base[:min(len(base), linkNameMax)]+".log"), nil
}

// Link makes the link to a container's log, unless there is no log: a
// container may write elsewhere. The link is a convenience; that it cannot be
// made is not a failure of the container.
func (l PodLogs) Link(container, containerID string, attempt uint32) error {
	target, err := l.File(container, attempt)
	if err == nil && !l.has(container, filepath.Base(target)) {
		return nil
	}
	link := ""
	if err == nil {
		link, err = l.link(container, containerID)
	}
	if err == nil && link != "" {
		err = symlink(l.pod.layout.ContainerLogRoot, target, filepath.Base(link))
	}
	if err != nil {
		return fmt.Errorf("linking the log of container %s: %w", container, err)
	}
	return nil
}

// has reports whether a container has a log of that name.
func (l PodLogs) has(container, log string) bool {
	dir, err := l.Open(container)
	if err != nil {
		return false
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	_, err = dir.Lstat(log)
	return err == nil
}

// symlink makes a link in a directory, in the place of another one if need be.
func symlink(root, target, link string) error {
	dir, err := makeLogDir(root, logDirMode, logDirMode)
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

// removeAllLinks removes the links to logs of the pod, which would dangle.
func (l PodLogs) removeAllLinks() error {
	own, err := l.base()
	if err != nil {
		return err
	}
	return l.removeLinks(func(target string) bool {
		rest, below := strings.CutPrefix(target, l.pod.layout.LogRoot+string(filepath.Separator))
		base, _, within := strings.Cut(rest, string(filepath.Separator))
		return below && within && (base == own || l.isKubelets(base))
	})
}

// removeLinks removes the links to logs that go.
func (l PodLogs) removeLinks(goes func(target string) bool) error {
	root := l.pod.layout.ContainerLogRoot
	if root == "" {
		return nil
	}
	dir, err := openLogDir(root)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	entries, err := dir.Entries()
	for _, entry := range entries {
		if target, readErr := dir.Readlink(entry.Name()); readErr == nil && goes(target) {
			err = errors.Join(err, dir.Remove(entry.Name()))
		}
	}
	return err
}
