package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// linkNameMax is the length at which the name of a log link is cut, in bytes and
// without its ending (kubelet: legacyLogSymlink).
const linkNameMax = 251

// logLink is the link through which log shippers find the log of a container; ""
// when there are no such links.
func (p Pod) logLink(namespace, name, container, containerID string) string {
	if p.layout.ContainerLogRoot == "" {
		return ""
	}
	base := fmt.Sprintf("%s_%s_%s-%s", name, namespace, container, containerID)
	return filepath.Join(p.layout.ContainerLogRoot, base[:min(len(base), linkNameMax)]+".log")
}

// LinkLog makes the link to a container's log, unless there is no log: a
// container may write elsewhere. The link is a convenience; that it cannot be
// made is not a failure of the container.
func (p Pod) LinkLog(namespace, name, container, containerID string, attempt uint32) error {
	link := p.logLink(namespace, name, container, containerID)
	target := p.LogFile(namespace, name, container, attempt)
	if _, err := os.Stat(target); link == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := makeDirs(p.layout.ContainerLogRoot, logDirMode, logDirMode)
	if err == nil {
		err = symlink(target, link)
	}
	if err != nil {
		return fmt.Errorf("linking the log of container %s: %w", container, err)
	}
	return nil
}

// symlink makes a link, in the place of another one if need be.
func symlink(target, link string) error {
	if now, err := os.Readlink(link); err == nil && now == target {
		return nil
	}
	if err := removeFile(link); err != nil {
		return err
	}
	return os.Symlink(target, link)
}

// removeAllLinks removes the links to logs of the pod, which would dangle.
func (p Pod) removeAllLinks(namespace, name string) error {
	below := p.LogDir(namespace, name) + string(filepath.Separator)
	return p.removeLinks(func(target string) bool { return strings.HasPrefix(target, below) })
}

// removeLinks removes the links to logs that go.
func (p Pod) removeLinks(goes func(target string) bool) error {
	root := p.layout.ContainerLogRoot
	if root == "" {
		return nil
	}
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		link := filepath.Join(root, entry.Name())
		target, err := os.Readlink(link)
		if err != nil || !goes(target) {
			continue
		}
		if err := removeFile(link); err != nil {
			return err
		}
	}
	return nil
}

// removeFile removes a file or link; one that is gone is no error.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
