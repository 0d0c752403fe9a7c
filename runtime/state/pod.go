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

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/podlogs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Pod is the place of one pod: its directory, and in methods of their own the places of what is
// kept of it (Checkpoint, History, Logs and others). Its path methods are pure: those that take names return a
// *NameError for one that cannot be part of a path. What touches the disk returns an error.
type Pod struct {
	layout Layout
	uid    types.UID
	// refused is why the uid is not taken; nil as a rule.
	refused error
}

// Dir is the pod's directory.
func (p Pod) Dir() string { return filepath.Join(p.layout.pods(), string(p.uid)) }

// EtcHosts is the hosts file that the pod's containers share.
func (p Pod) EtcHosts() string { return filepath.Join(p.Dir(), "etc-hosts") }

// EmptyDir is the kubelet's name of the plugin behind emptyDir volumes, and
// behind all volumes whose content podctl writes.
const EmptyDir = "empty-dir"

// VolumeDir is where the content of a volume lies. The plugin is the kubelet's
// name of the kind of volume, for example empty-dir or downward-api.
func (p Pod) VolumeDir(plugin, name string) (string, error) {
	if err := statedir.FirstError(p.refused, statedir.CheckName(statedir.KindPlugin, plugin), statedir.CheckName(statedir.KindVolume, name)); err != nil {
		return "", err
	}
	return filepath.Join(p.Volumes(), "kubernetes.io~"+plugin, name), nil
}

// VolumeMarker is the file that is there once a volume is complete. Volumes with
// content of podctl's own are emptyDirs inside, which the marker's name shows.
func (p Pod) VolumeMarker(plugin, name string) (string, error) {
	if err := statedir.FirstError(p.refused, statedir.CheckName(statedir.KindPlugin, plugin), statedir.CheckName(statedir.KindVolume, name)); err != nil {
		return "", err
	}
	if plugin != EmptyDir {
		name = "wrapped_" + name
	}
	return filepath.Join(p.Plugins(), "kubernetes.io~"+EmptyDir, name, "ready"), nil
}

// Volumes holds the content of all volumes of the pod.
func (p Pod) Volumes() string { return filepath.Join(p.Dir(), "volumes") }

// Plugins holds the markers of the pod's volumes.
func (p Pod) Plugins() string { return filepath.Join(p.Dir(), "plugins") }

// SubPaths holds all bound subPaths of the pod.
func (p Pod) SubPaths() string { return filepath.Join(p.Dir(), "volume-subpaths") }

// SubPath is where one subPath of a volume is bound for a container: index is
// the position in its volumeMounts.
func (p Pod) SubPath(volume, container string, index int) (string, error) {
	if err := statedir.FirstError(p.refused, statedir.CheckName(statedir.KindVolume, volume), statedir.CheckName(statedir.KindContainer, container)); err != nil {
		return "", err
	}
	return filepath.Join(p.SubPaths(), volume, container, strconv.Itoa(index)), nil
}

// refusedUID stands for a uid that is refused. No uid begins with a point, so that nothing
// ever lies there.
const refusedUID types.UID = ".refused"

// check refuses a uid that cannot name a directory. A uid comes out of a manifest or a
// checkpoint.
func (p Pod) check() error { return p.refused }

// Pod is the place of the pod with a uid. Nothing is created. With a uid that cannot name a directory
// everything that would touch the disk is a *NameError.
func (l Layout) Pod(uid types.UID) Pod {
	if err := statedir.CheckName(statedir.KindUID, string(uid)); err != nil {
		return Pod{layout: l, uid: refusedUID, refused: err}
	}
	return Pod{layout: l, uid: uid}
}

// History is the place of what happened to the pod.
func (p Pod) History() HistoryStore { return HistoryStore{p} }

// Checkpoint is the place of the pod's checkpoint.
func (p Pod) Checkpoint() CheckpointStore { return CheckpointStore{p} }

// IDs is the place of the pod's range.
func (p Pod) IDs() IDStore { return IDStore{p} }

// Logs is the place of the logs of the pod, which has that name.
func (p Pod) Logs(namespace, name string) podlogs.Logs {
	return podlogs.Logs{Roots: p.layout.logs(), UID: p.uid, Namespace: namespace, Name: name, Refused: p.refused}
}

// TerminationLogs is the place of a container's termination messages.
func (p Pod) TerminationLogs(container string) TerminationLogs { return TerminationLogs{p, container} }

// Claims is the place of all claims, as the pod uses it.
func (p Pod) Claims() Claims { return Claims{layout: p.layout, refused: p.refused} }

// podDirMode is the mode of a pod's directory and of those in it (kubelet:
// makePodDataDirs).
const podDirMode = 0o750

// MakeDir creates a directory below the pod's own, or the pod's own. Missing
// directories above it get mode 0750, the last one gets perm, whatever the
// umask. One that is there already keeps its mode.
func (p Pod) MakeDir(path string, perm fs.FileMode) error {
	dir, err := p.Make(path, perm)
	if err != nil {
		return err
	}
	return dir.Close()
}

// Touch makes an empty file in one of the pod's directories, which is created if need be. What has that path stays.
func Touch(p Pod, path string, perm fs.FileMode) error {
	dir, err := p.Make(filepath.Dir(path), podDirMode)
	if err != nil {
		return err
	}
	return errors.Join(dir.Touch(filepath.Base(path), perm), dir.Close())
}

// Make creates a directory as MakeDir does, and opens it.
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

// Open opens a directory below the pod's own, or the pod's own. Links are not followed.
func (p Pod) Open(path string) (*safefs.Dir, error) {
	names, err := below(p, path)
	if err != nil {
		return nil, err
	}
	return p.layout.dir().Open(names...)
}

// below are the elements that lead from the state directory to a directory of this pod.
func below(p Pod, path string) ([]string, error) {
	if p.refused != nil {
		return nil, p.refused
	}
	rest, ok := strings.CutPrefix(path+"/", p.Dir()+"/")
	if !ok {
		return nil, fmt.Errorf("%s does not lie in the pod's directory %s", path, p.Dir())
	}
	return append([]string{podsName, string(p.uid)}, strings.FieldsFunc(rest, func(r rune) bool { return r == '/' })...), nil
}

// replaceFile replaces a file in the pod's directory. A file that was renamed is only safe once its directory is.
func replaceFile(p Pod, name string, text []byte, perm fs.FileMode) error {
	return p.layout.dir().Replace(filepath.Join(p.Dir(), unfinishedName(name)), filepath.Join(p.Dir(), name), text, perm, statedir.Durable)
}

// unfinishedName is the name of a file in the pod's directory while it is being written.
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

// HasDir reports whether something lies on disk for the pod.
func (p Pod) HasDir() (bool, error) {
	if err := p.check(); err != nil {
		return false, err
	}
	return p.layout.dir().Exists(p.Dir())
}

// DirSize is how much the pod's directory takes on disk, without what is only
// bound into it.
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

// CgroupMark is there while the pod's cgroup is being made.
type CgroupMark struct{ pod Pod }

// CgroupMark is the mark of the pod's cgroup.
func (p Pod) CgroupMark() CgroupMark { return CgroupMark{p} }

func (m CgroupMark) path() string { return filepath.Join(m.pod.Dir(), "cgroup.unfinished") }

// Set notes that the pod's cgroup is going to be made: until Clear it may be without its
// limits.
func (m CgroupMark) Set() error {
	if err := Touch(m.pod, m.path(), 0o600); err != nil {
		return fmt.Errorf("marking the cgroup as unfinished: %w", err)
	}
	return nil
}

// Clear notes that the pod's cgroup has its limits, or is gone.
func (m CgroupMark) Clear() error {
	err := m.pod.check()
	if err == nil {
		err = m.pod.layout.dir().Remove(m.path())
	}
	if err != nil {
		return fmt.Errorf("marking the cgroup as finished: %w", err)
	}
	return nil
}

// IsSet reports whether nobody can say if the pod's cgroup has its limits.
func (m CgroupMark) IsSet() bool {
	marked, err := m.pod.layout.dir().Exists(m.path())
	return err == nil && marked
}
