package podlogs

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Remove removes the logs of one attempt of a container, including rotated ones, and its link.
func (l Logs) Remove(container, containerID string, attempt uint32) error {
	_, err := l.remove(container, func(n uint32) bool { return n == attempt })
	link := ""
	if err == nil {
		link, err = l.LinkPath(container, containerID)
	}
	if err == nil && link != "" {
		err = inDir(filepath.Dir(link), func(dir *safefs.Dir) error { return dir.Remove(filepath.Base(link)) })
	}
	return safefs.Wrapf(err, "removing the logs of container %s", container)
}

// RemoveOlder removes the logs of a container's attempts before one, and the links to them.
func (l Logs) RemoveOlder(container string, attempt uint32) error {
	removed, err := l.remove(container, func(n uint32) bool { return n < attempt })
	if err == nil && len(removed) > 0 {
		err = l.Roots.removeLinks(func(target string) bool { return removed[target] })
	}
	return safefs.Wrapf(err, "removing old logs of container %s", container)
}

// remove removes the logs of the attempts for which goes returns true, and returns their paths. A log directory that is
// not a directory has no logs.
func (l Logs) remove(container string, goes func(attempt uint32) bool) (map[string]bool, error) {
	path, err := l.ContainerDir(container)
	if err != nil {
		return nil, err
	}
	removed := map[string]bool{}
	err = l.in(container, func(dir *safefs.Dir) (err error) {
		files, err := readLogDir(dir)
		for _, f := range files {
			if err == nil && goes(f.attempt) {
				err, removed[filepath.Join(path, f.name)] = dir.Remove(f.name), true
			}
		}
		return err
	})
	return removed, err
}

// RemoveAll removes all logs of a pod and the links to them. The caller holds the pod's lock.
func (l Logs) RemoveAll() error {
	err := l.removeAllLinks()
	if err == nil {
		err = l.inRoot((*safefs.Dir).RemoveAll)
	}
	return safefs.Wrapf(err, "removing the pod's logs")
}

// inRoot calls work with the name of each existing log directory of the pod. It removes a file that is not a directory,
// which a container that ships logs may have created.
func (l Logs) inRoot(work func(root *safefs.Dir, base string) error) error {
	return inDir(l.Roots.Logs, func(root *safefs.Dir) error {
		bases, err := l.bases(root)
		for _, base := range bases {
			info, lookErr := root.Lstat(base)
			switch {
			case safefs.Missing(lookErr):
			case lookErr != nil:
				err = errors.Join(err, lookErr)
			case info.IsDir():
				err = errors.Join(err, work(root, base))
			default:
				err = errors.Join(err, root.Remove(base))
			}
		}
		return err
	})
}

// bases returns the name of the pod's log directory, and those of a kubelet that ran it as a static pod. A kubelet adds
// the node's name to the pod's name (kubelet: generatePodName).
func (l Logs) bases(root *safefs.Dir) ([]string, error) {
	base, err := l.base()
	if err != nil {
		return nil, err
	}
	bases := []string{base}
	entries, err := root.Entries()
	for _, entry := range entries {
		if l.isKubelets(entry.Name()) {
			bases = append(bases, entry.Name())
		}
	}
	return bases, err
}

// isKubelets reports whether a log directory belongs to a kubelet that ran the pod. No other pod has this uid.
func (l Logs) isKubelets(base string) bool {
	node, begins := strings.CutPrefix(base, l.Namespace+"_"+l.Name+"-")
	node, ends := strings.CutSuffix(node, "_"+string(l.UID))
	return begins && ends && node != "" && statedir.CheckName(statedir.KindPod, l.Name+"-"+node) == nil
}
