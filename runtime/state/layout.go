package state

import (
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// Layout says where things lie.
type Layout struct {
	// Root is podctl's state directory.
	Root string
	// LogRoot holds one directory of logs per pod, ContainerLogRoot the links to
	// them that log shippers follow. An empty ContainerLogRoot: no links.
	LogRoot          string
	ContainerLogRoot string
	// Command is what this process tells others who wait for its locks: the program and
	// its words. Empty means what it was called with.
	Command []string
}

// Default is the layout of a machine that podctl is installed on. The logs lie
// where a kubelet puts them, so that log shippers find them.
func Default() Layout {
	return Layout{Root: "/var/lib/podctl", LogRoot: "/var/log/pods", ContainerLogRoot: "/var/log/containers"}
}

// NodeDir holds everything that belongs to the private containerd of
// `podctl node`.
func (l Layout) NodeDir() string { return filepath.Join(l.Root, "node") }

// Seccomp holds the seccomp profiles of type Localhost, by their relative paths,
// as a kubelet's root directory does.
func (l Layout) Seccomp() string { return filepath.Join(l.Root, "seccomp") }

// Pod is the place of one pod. Nothing is created. With a uid that cannot name a directory
// everything that would touch the disk is a *NameError.
func (l Layout) Pod(uid types.UID) Pod {
	if err := checkName(kindUID, string(uid)); err != nil {
		return Pod{layout: l, uid: refusedUID, refused: err}
	}
	return Pod{layout: l, uid: uid}
}

func (l Layout) pods() string { return filepath.Join(l.Root, "pods") }

func (l Layout) locks() string { return filepath.Join(l.Root, "locks") }

// Pod knows the paths of one pod. Its path methods are pure: those that take names return a
// *NameError for one that cannot be part of a path. What touches the disk returns an error.
type Pod struct {
	layout Layout
	uid    types.UID
	// refused is why the uid is not taken; nil as a rule.
	refused error
}

// Dir is the pod's directory.
func (p Pod) Dir() string { return filepath.Join(p.layout.pods(), string(p.uid)) }

// JournalFile is what podctl remembers of the pod.
func (p Pod) JournalFile() string { return filepath.Join(p.Dir(), "journal.json") }

// EtcHosts is the hosts file that the pod's containers share.
func (p Pod) EtcHosts() string { return filepath.Join(p.Dir(), "etc-hosts") }

// userNamespaceFile is where a kubelet keeps the id mappings of a pod with a
// user namespace of its own.
func (p Pod) userNamespaceFile() string { return filepath.Join(p.Dir(), "userns") }

// EmptyDir is the kubelet's name of the plugin behind emptyDir volumes, and
// behind all volumes whose content podctl writes.
const EmptyDir = "empty-dir"

// VolumeDir is where the content of a volume lies. The plugin is the kubelet's
// name of the kind of volume, for example empty-dir or downward-api.
func (p Pod) VolumeDir(plugin, name string) (string, error) {
	if err := firstError(p.refused, checkName(kindPlugin, plugin), checkName(kindVolume, name)); err != nil {
		return "", err
	}
	return filepath.Join(p.Dir(), "volumes", "kubernetes.io~"+plugin, name), nil
}

// VolumeMarker is the file that tells that a volume is complete. Volumes with
// content of podctl's own are emptyDirs inside, which the marker's name shows.
func (p Pod) VolumeMarker(plugin, name string) (string, error) {
	if err := firstError(p.refused, checkName(kindPlugin, plugin), checkName(kindVolume, name)); err != nil {
		return "", err
	}
	if plugin != EmptyDir {
		name = "wrapped_" + name
	}
	return filepath.Join(p.Plugins(), "kubernetes.io~"+EmptyDir, name, "ready"), nil
}

// Volumes holds the content of all volumes of the pod, Plugins their markers and
// SubPaths what is bound for a subPath.
func (p Pod) Volumes() string { return filepath.Join(p.Dir(), "volumes") }

// Plugins holds the markers of the pod's volumes.
func (p Pod) Plugins() string { return filepath.Join(p.Dir(), "plugins") }

// SubPaths holds all bound subPaths of the pod.
func (p Pod) SubPaths() string { return filepath.Join(p.Dir(), "volume-subpaths") }

// SubPath is where one subPath of a volume is bound for a container: index is
// the position in its volumeMounts.
func (p Pod) SubPath(volume, container string, index int) (string, error) {
	if err := firstError(p.refused, checkName(kindVolume, volume), checkName(kindContainer, container)); err != nil {
		return "", err
	}
	return filepath.Join(p.SubPaths(), volume, container, strconv.Itoa(index)), nil
}

// Containers holds the termination messages of the pod's containers.
func (p Pod) Containers() string { return filepath.Join(p.Dir(), "containers") }

// ContainerDir holds the termination messages of one container.
func (p Pod) ContainerDir(container string) (string, error) {
	if err := firstError(p.refused, checkName(kindContainer, container)); err != nil {
		return "", err
	}
	return filepath.Join(p.Containers(), container), nil
}

// lockFile is the file that a process holds while it works on the pod.
func (p Pod) lockFile() string { return p.layout.lockFile(string(p.uid)) }

// lockFile is the file of a lock by its name: that of a pod is its uid.
func (l Layout) lockFile(name string) string { return filepath.Join(l.locks(), name+".lock") }

// check refuses a uid that cannot name a directory. A uid comes out of a manifest or a
// journal.
func (p Pod) check() error { return p.refused }
