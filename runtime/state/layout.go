package state

import (
	"path/filepath"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state/podlogs"
	"github.com/podctl/podctl/runtime/state/statedir"
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

// dir is the state directory, with what can be done with its files.
func (l Layout) dir() statedir.Dir { return statedir.Dir{Path: l.Root} }

// podsName is the name of the directory of all pods.
const podsName = "pods"

func (l Layout) pods() string { return filepath.Join(l.Root, podsName) }

// DiskDirs are the directories that fill the disk of the node: what pods keep there, and their logs.
// They may not be there yet.
func (l Layout) DiskDirs() []string { return []string{l.pods(), l.LogRoot} }

// Pods are the pods of which something is on disk.
func (l Layout) Pods() Pods { return Pods{l} }

// Histories is the place of the events of pods.
func (l Layout) Histories() Histories { return Histories{l} }

// PulledImages is the place of the images that podctl pulled.
func (l Layout) PulledImages() PulledImages { return PulledImages{l} }

// Objects is the place of the ConfigMaps, Secrets, claims and Services that are stored.
func (l Layout) Objects() Objects {
	return Objects{l, "objects", kindDirs(func(k podspec.Kind) bool { return !k.Workload })}
}

// Workloads is the place of the objects that stand for pods.
func (l Layout) Workloads() Objects {
	return Objects{l, "workloads", kindDirs(func(k podspec.Kind) bool { return k.Workload })}
}

// AgentSocket is where the agent of the state directory answers.
func (l Layout) AgentSocket() string { return filepath.Join(l.Root, "agent.sock") }

// PodsSocket is where the agent serves the kubelet's local Pods API.
func (l Layout) PodsSocket() string { return filepath.Join(l.Root, "pods.sock") }

// Locks is the place of all locks.
func (l Layout) Locks() Locks { return Locks{l} }

// Claims is the place of all claims.
func (l Layout) Claims() Claims { return Claims{layout: l} }

// DigestKey is the place of the key of digests.
func (l Layout) DigestKey() KeyFile { return KeyFile{l} }

// logs is where the logs of pods lie.
func (l Layout) logs() podlogs.Roots {
	return podlogs.Roots{Logs: l.LogRoot, Links: l.ContainerLogRoot}
}

// DeletedLogs is the place of the logs of deleted pods.
func (l Layout) DeletedLogs() podlogs.Deleted { return podlogs.Deleted{Roots: l.logs()} }

// ErrUnsafe says that the state directory cannot be trusted.
var ErrUnsafe = statedir.ErrUnsafe

// NameError says that a name cannot be part of a path of podctl's.
type NameError = statedir.NameError

// Prepare creates the state directory for its owner alone, and refuses one that
// somebody else could have put there.
func (l Layout) Prepare() error { return l.dir().Prepare() }
