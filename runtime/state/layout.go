package state

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

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

// Pod is the place of one pod. Nothing is created.
func (l Layout) Pod(uid types.UID) Pod { return Pod{layout: l, uid: uid} }

func (l Layout) pods() string { return filepath.Join(l.Root, "pods") }

func (l Layout) locks() string { return filepath.Join(l.Root, "locks") }

// Pod knows the paths of one pod. Its path methods are pure; what touches the
// disk returns an error.
type Pod struct {
	layout Layout
	uid    types.UID
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
func (p Pod) VolumeDir(plugin, name string) string {
	return filepath.Join(p.Dir(), "volumes", "kubernetes.io~"+plugin, name)
}

// VolumeMarker is the file that tells that a volume is complete. Volumes with
// content of podctl's own are emptyDirs inside, which the marker's name shows.
func (p Pod) VolumeMarker(plugin, name string) string {
	if plugin != EmptyDir {
		name = "wrapped_" + name
	}
	return filepath.Join(p.Plugins(), "kubernetes.io~"+EmptyDir, name, "ready")
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
func (p Pod) SubPath(volume, container string, index int) string {
	return filepath.Join(p.SubPaths(), volume, container, strconv.Itoa(index))
}

// Containers holds the termination messages of the pod's containers.
func (p Pod) Containers() string { return filepath.Join(p.Dir(), "containers") }

// ContainerDir holds the termination messages of one container.
func (p Pod) ContainerDir(container string) string {
	return filepath.Join(p.Containers(), container)
}

// lockFile is the file that a process holds while it works on the pod.
func (p Pod) lockFile() string { return filepath.Join(p.layout.locks(), string(p.uid)+".lock") }

// check refuses a uid that would lead out of the pods directory. A uid comes out
// of a manifest; what the kubelet refuses besides ("_") is podspec's to say.
func (p Pod) check() error {
	uid := string(p.uid)
	if uid == "" || strings.HasPrefix(uid, ".") || strings.ContainsAny(uid, "/\x00") {
		return fmt.Errorf("the uid %q cannot name a directory: give the pod another metadata.uid", uid)
	}
	return nil
}
