package state

import (
	"path/filepath"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state/podlogs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Layout defines where podctl's files lie.
type Layout struct {
	// Root is podctl's state directory.
	Root string
	// LogRoot holds one directory of logs per pod. ContainerLogRoot holds the links to them that log shippers follow;
	// if empty, there are no links.
	LogRoot          string
	ContainerLogRoot string
	// Command is the command line that other processes see while they wait for a lock of this process. Empty means the
	// arguments of the process.
	Command []string
}

// Default returns the layout of a machine with podctl installed. The logs lie where a kubelet puts them, so log
// shippers find them.
func Default() Layout {
	return Layout{Root: "/var/lib/podctl", LogRoot: "/var/log/pods", ContainerLogRoot: "/var/log/containers"}
}

// NodeDir returns the directory of the private containerd of `podctl node`.
func (l Layout) NodeDir() string { return filepath.Join(l.Root, "node") }

// Seccomp returns the directory of seccomp profiles of type Localhost, as in a kubelet's root directory.
func (l Layout) Seccomp() string { return filepath.Join(l.Root, "seccomp") }

func (l Layout) dir() statedir.Dir { return statedir.Dir{Path: l.Root} }

const podsName = "pods"

func (l Layout) pods() string { return filepath.Join(l.Root, podsName) }

// DiskDirs returns the directories that use the node's disk: the pods' files and their logs. They may not exist yet.
func (l Layout) DiskDirs() []string { return []string{l.pods(), l.LogRoot} }

// Pods lists the pods with files on disk.
func (l Layout) Pods() Pods { return Pods{l} }

// Histories returns the histories of pods.
func (l Layout) Histories() Histories { return Histories{l} }

// PulledImages returns the record of the images that podctl pulled.
func (l Layout) PulledImages() PulledImages { return PulledImages{l} }

// Objects returns the store of ConfigMaps, Secrets, claims and Services.
func (l Layout) Objects() Objects {
	return Objects{l, "objects", kindDirs(func(k podspec.Kind) bool { return !k.Workload })}
}

// Workloads returns the store of workloads.
func (l Layout) Workloads() Objects {
	return Objects{l, "workloads", kindDirs(func(k podspec.Kind) bool { return k.Workload })}
}

// AgentSocket returns the path of the socket of the agent for this state directory.
func (l Layout) AgentSocket() string { return filepath.Join(l.Root, "agent.sock") }

// PodResourcesSocket returns the path of the socket with the PodResources API, as in a kubelet's root directory.
func PodResourcesSocket(l Layout) string {
	return filepath.Join(l.Root, podResourcesName, "kubelet.sock")
}

// podResourcesName is the name of the directory of that socket.
const podResourcesName = "pod-resources"

// PodsSocket returns the path of the socket on which the agent serves the kubelet's local Pods API, as in a kubelet's
// root directory.
func (l Layout) PodsSocket() string { return filepath.Join(l.Root, podsAPIName, podsAPIName+".sock") }

// podsAPIName is the name of the directory of that socket.
const podsAPIName = "pods-api"

// Locks returns the locks of the state directory.
func (l Layout) Locks() Locks { return Locks{l} }

// Claims returns the directories of all claims.
func (l Layout) Claims() Claims { return Claims{layout: l} }

// DigestKey returns the file with the key of digests.
func (l Layout) DigestKey() KeyFile { return KeyFile{l} }

func (l Layout) logs() podlogs.Roots {
	return podlogs.Roots{Logs: l.LogRoot, Links: l.ContainerLogRoot}
}

// DeletedLogs returns the logs of deleted pods.
func (l Layout) DeletedLogs() podlogs.Deleted { return podlogs.Deleted{Roots: l.logs()} }

// ErrUnsafe reports that the state directory cannot be trusted.
var ErrUnsafe = statedir.ErrUnsafe

// NameError reports a name that cannot be part of a path.
type NameError = statedir.NameError

// Prepare creates the state directory with access for its owner only. It refuses a directory that another user could
// have put there.
func (l Layout) Prepare() error { return l.dir().Prepare() }
