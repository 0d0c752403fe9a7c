package state

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/podlogs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Pod is one pod on disk: its directory, and methods for the places of its data (Checkpoint, History, Logs and others).
// Path methods do not access the disk. They return a *NameError for a name that cannot be part of a path. Methods that
// access the disk return an error.
type Pod struct {
	layout Layout
	uid    types.UID
	// refused is the reason why the uid is invalid; usually nil.
	refused error
}

// Dir returns the pod's directory.
func (p Pod) Dir() string { return filepath.Join(p.layout.pods(), string(p.uid)) }

// EtcHosts returns the hosts file that the pod's containers share.
func (p Pod) EtcHosts() string { return filepath.Join(p.Dir(), "etc-hosts") }

// VolumeDir returns the directory of a volume's content. plugin is the volume's podspec.VolumePlugin.
func (p Pod) VolumeDir(plugin, name string) (string, error) {
	return joined(checkVolume(p, plugin, name), p.Volumes(), "kubernetes.io~"+plugin, name)
}

func checkVolume(p Pod, plugin, name string) error {
	return statedir.FirstError(
		p.refused,
		statedir.CheckName(statedir.KindPlugin, plugin),
		statedir.CheckName(statedir.KindVolume, name),
	)
}

// joined joins the elements of a path unless an error refuses one of them.
func joined(refused error, elements ...string) (string, error) {
	if refused != nil {
		return "", refused
	}
	return filepath.Join(elements...), nil
}

// VolumeMarker returns the file that exists once a volume is complete. Volumes with content from podctl are wrapped
// emptyDirs, which the marker's name shows.
func (p Pod) VolumeMarker(plugin, name string) (string, error) {
	err := checkVolume(p, plugin, name)
	if plugin != podspec.EmptyDir {
		name = "wrapped_" + name
	}
	return joined(err, p.Plugins(), "kubernetes.io~"+podspec.EmptyDir, name, "ready")
}

// Names in the directory of a pod that belong to its volumes, beside idsName.
const (
	volumesName  = "volumes"
	pluginsName  = "plugins"
	subPathsName = "volume-subpaths"
)

// IsOfVolumes reports whether an entry of a pod's directory belongs to its volumes, or is its range of ids.
func IsOfVolumes(name string) bool {
	return name == volumesName || name == pluginsName || name == subPathsName || name == idsName
}

// Volumes returns the directory of the contents of all volumes.
func (p Pod) Volumes() string { return filepath.Join(p.Dir(), volumesName) }

// Plugins returns the directory of the volumes' markers.
func (p Pod) Plugins() string { return filepath.Join(p.Dir(), pluginsName) }

// SubPaths returns the directory of all bound subPaths.
func (p Pod) SubPaths() string { return filepath.Join(p.Dir(), subPathsName) }

// SubPath returns where one subPath of a volume is bound for a container. index is the position in its volumeMounts.
func (p Pod) SubPath(volume, container string, index int) (string, error) {
	err := statedir.FirstError(
		p.refused,
		statedir.CheckName(statedir.KindVolume, volume),
		statedir.CheckName(statedir.KindContainer, container),
	)
	return joined(err, p.SubPaths(), volume, container, strconv.Itoa(index))
}

// refusedUID replaces an invalid uid. A uid cannot begin with a dot, so this path never exists.
const refusedUID types.UID = ".refused"

// check returns an error if the uid cannot name a directory. It may come from a manifest or a checkpoint.
func (p Pod) check() error { return p.refused }

// Pod returns the pod with a uid. It creates nothing. If the uid cannot name a directory, all methods that access the
// disk return a *NameError.
func (l Layout) Pod(uid types.UID) Pod {
	if err := statedir.CheckName(statedir.KindUID, string(uid)); err != nil {
		return Pod{layout: l, uid: refusedUID, refused: err}
	}
	return Pod{layout: l, uid: uid}
}

// removeFile removes a file of a pod.
func removeFile(p Pod, path string) error {
	if p.refused != nil {
		return p.refused
	}
	return p.layout.dir().Remove(path)
}

// History returns the store of the pod's history.
func (p Pod) History() HistoryStore { return HistoryStore{p} }

// Checkpoint returns the store of the pod's checkpoint.
func (p Pod) Checkpoint() CheckpointStore { return CheckpointStore{p} }

// IDs returns the store of the pod's id range.
func (p Pod) IDs() IDStore { return IDStore{p} }

// Logs returns the logs of the pod, which has this name.
func (p Pod) Logs(namespace, name string) podlogs.Logs {
	return podlogs.Logs{Roots: p.layout.logs(), UID: p.uid, Namespace: namespace, Name: name, Refused: p.refused}
}

// TerminationLogs returns the termination messages of a container.
func (p Pod) TerminationLogs(container string) TerminationLogs { return TerminationLogs{p, container} }

// Claims returns the claims for use by this pod.
func (p Pod) Claims() Claims { return Claims{layout: p.layout, refused: p.refused} }

// podDirMode is the mode of a pod's directory and of those in it (kubelet: makePodDataDirs).
const podDirMode = 0o750

// MakeDir creates the pod's directory or one below it. Missing parents get mode 0750 and the last directory gets perm,
// regardless of the umask. An existing directory keeps its mode.
func (p Pod) MakeDir(path string, perm fs.FileMode) error {
	dir, err := p.Make(path, perm)
	if err != nil {
		return err
	}
	return dir.Close()
}

// Touch creates an empty file in one of the pod's directories, and the directory if necessary. It does not change an
// existing file.
func Touch(p Pod, path string, perm fs.FileMode) error {
	dir, err := p.Make(filepath.Dir(path), podDirMode)
	if err != nil {
		return err
	}
	return errors.Join(dir.Touch(filepath.Base(path), perm), dir.Close())
}

// Make creates a directory like MakeDir, and opens it.
func (p Pod) Make(path string, perm fs.FileMode) (*safefs.Dir, error) {
	names, err := below(p, path)
	if err != nil {
		return nil, err
	}
	dir, err := p.layout.dir().Make(podDirMode, perm, names...)
	if err != nil {
		return nil, fmt.Errorf("creating a directory of the pod: %w", err)
	}
	return dir, nil
}

// Open opens the pod's directory or one below it, without following links.
func (p Pod) Open(path string) (*safefs.Dir, error) {
	names, err := below(p, path)
	if err != nil {
		return nil, err
	}
	return p.layout.dir().Open(names...)
}

// below returns the path elements from the state directory to a directory of this pod.
func below(p Pod, path string) ([]string, error) {
	if p.refused != nil {
		return nil, p.refused
	}
	rest, ok := strings.CutPrefix(path+"/", p.Dir()+"/")
	if !ok {
		return nil, fmt.Errorf("%s is not in the pod's directory %s", path, p.Dir())
	}
	elements := strings.FieldsFunc(rest, func(r rune) bool { return r == '/' })
	return append([]string{podsName, string(p.uid)}, elements...), nil
}

// replaceFile replaces a file in the pod's directory. It syncs the directory too, because otherwise a crash can undo
// the rename.
func replaceFile(p Pod, name string, text []byte, perm fs.FileMode) error {
	unfinished := filepath.Join(p.Dir(), unfinishedName(name))
	return p.layout.dir().Replace(unfinished, filepath.Join(p.Dir(), name), text, perm, statedir.Durable)
}

// unfinishedName is the name of a temporary file in the pod's directory.
func unfinishedName(name string) string { return "." + name }

// removeFiles removes the files in the pod's directory whose names begin with one of these prefixes.
func removeFiles(p Pod, prefixes ...string) error {
	entries, err := p.layout.dir().Entries(p.Dir())
	for _, entry := range entries {
		begins := func(prefix string) bool { return strings.HasPrefix(entry.Name(), prefix) }
		if slices.ContainsFunc(prefixes, begins) {
			err = errors.Join(err, p.layout.dir().Remove(filepath.Join(p.Dir(), entry.Name())))
		}
	}
	return err
}

// HasDir reports whether the pod has a directory on disk.
func (p Pod) HasDir() (bool, error) {
	if err := p.check(); err != nil {
		return false, err
	}
	return p.layout.dir().Exists(p.Dir())
}

// DirSize returns the disk usage of the pod's directory in bytes, without bind mounts.
func (p Pod) DirSize() int64 {
	entries, err := p.layout.dir().Entries(p.Dir())
	if err != nil {
		return 0
	}
	var sum int64
	for _, entry := range entries {
		if path := filepath.Join(p.Dir(), entry.Name()); path != p.SubPaths() {
			sum += statedir.Size(path)
		}
	}
	return sum
}

// CgroupMark is a file that exists while the pod's cgroup is being created.
type CgroupMark struct{ pod Pod }

// CgroupMark returns the mark of the pod's cgroup.
func (p Pod) CgroupMark() CgroupMark { return CgroupMark{p} }

func (m CgroupMark) path() string { return filepath.Join(m.pod.Dir(), "cgroup.unfinished") }

// Set records that the pod's cgroup is about to be created and may be without limits until Clear.
func (m CgroupMark) Set() error {
	return safefs.Wrapf(Touch(m.pod, m.path(), 0o600), "marking the cgroup as unfinished")
}

// Clear records that the pod's cgroup has its limits, or does not exist.
func (m CgroupMark) Clear() error {
	return safefs.Wrapf(removeFile(m.pod, m.path()), "marking the cgroup as finished")
}

// IsSet reports whether the pod's cgroup may be without its limits.
func (m CgroupMark) IsSet() bool {
	marked, err := m.pod.layout.dir().Exists(m.path())
	return err == nil && marked
}
