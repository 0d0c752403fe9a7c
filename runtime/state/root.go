package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/safefs"
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

func (l Layout) pods() string { return filepath.Join(l.Root, "pods") }

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

// DeletedLogs is the place of the logs of deleted pods.
func (l Layout) DeletedLogs() DeletedLogs { return DeletedLogs{l} }

// ErrUnsafe says that the state directory cannot be trusted: somebody else could
// have put there what podctl would act on.
var ErrUnsafe = errors.New("the state directory cannot be trusted")

// ErrUnsafeLogs says the same of a log directory.
var ErrUnsafeLogs = errors.New("the log directory cannot be trusted")

// Prepare creates the state directory for its owner alone, and refuses one that
// somebody else could have put there.
func (l Layout) Prepare() error {
	_, err := l.root()
	if errors.Is(err, fs.ErrNotExist) {
		err = l.create()
	}
	return err
}

// create makes the state directory.
func (l Layout) create() error {
	path, err := filepath.Abs(l.Root)
	if err == nil {
		err = l.unsafe(safefs.CheckParents(path))
	}
	if err != nil {
		return err
	}
	made, err := safefs.MakeAll(path, 0o755, 0o700)
	if err == nil {
		err = made.Close()
	}
	if err != nil {
		return fmt.Errorf("creating the state directory: %w", err)
	}
	_, err = l.root()
	return err
}

// check refuses a state directory that another user owns or can write to. A
// missing one is fine: there is nothing to read in it.
func (l Layout) check() error {
	_, err := l.root()
	return safefs.IgnoreMissing(err)
}

// checkedRoot is a state directory to which the way was checked. Once is enough: the check says that nobody but root and the user of this
// process can change the way, so that nobody else can make it untrue either.
type checkedRoot struct {
	dir  *safefs.Dir
	info fs.FileInfo
}

// checkedRoots holds them by their paths, open for the life of the process.
var checkedRoots sync.Map //nolint:gochecknoglobals // What is true for all of the process is found out once.

// root is the open state directory, at which all that podctl does below it begins. It refuses one that another user owns, can write to, or
// could exchange for one of his own. The error is fs.ErrNotExist if there is none. The caller does not close it.
func (l Layout) root() (*safefs.Dir, error) {
	path, err := filepath.Abs(l.Root)
	if err != nil {
		return nil, fmt.Errorf("looking at the state directory: %w", err)
	}
	if known, ok := checkedRoots.Load(path); ok {
		known := known.(checkedRoot) //nolint:forcetypeassert // nothing else is stored
		if info, statErr := os.Stat(path); statErr == nil && os.SameFile(known.info, info) {
			return known.dir, l.trusted().check(info)
		}
	}
	// One that another directory has replaced is closed when nothing uses it any more.
	checked, err := l.openRoot(path)
	if err != nil {
		return nil, err
	}
	checkedRoots.Store(path, checked)
	return checked.dir, nil
}

// openRoot opens the state directory, and checks it and the way to it.
func (l Layout) openRoot(path string) (checkedRoot, error) {
	dir, err := safefs.OpenTrustedDir(path)
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return checkedRoot{}, fmt.Errorf("the state directory %s is not a directory: remove it, or choose another with --state-dir", l.Root)
	case errors.As(err, new(*safefs.UntrustedError)):
		return checkedRoot{}, l.unsafe(err)
	case err != nil:
		return checkedRoot{}, fmt.Errorf("looking at the state directory: %w", err)
	}
	info, err := dir.Stat()
	if err == nil {
		err = l.trusted().check(info)
	}
	if err != nil {
		return checkedRoot{}, errors.Join(err, dir.Close())
	}
	return checkedRoot{dir, info}, nil
}

// unsafe says of a state directory why it cannot be trusted.
func (l Layout) unsafe(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w; choose another with --state-dir", ErrUnsafe, err)
	}
	return nil
}

// trusted is a directory on which nobody else may decide.
type trusted struct {
	path string
	// unsafe is the error for one that cannot be trusted, option how to choose another one and
	// mode the one that it should have.
	unsafe error
	option string
	mode   fs.FileMode
}

func (l Layout) trusted() trusted {
	return trusted{path: l.Root, unsafe: ErrUnsafe, option: "with --state-dir", mode: 0o700}
}

// checkLogs refuses a log directory that another user owns or can write to: the
// runtime would follow a link in it, as root.
func checkLogs(dir *safefs.Dir) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	return trusted{path: dir.Path(), unsafe: ErrUnsafeLogs, option: "--log-root", mode: logDirMode}.check(info)
}

func (t trusted) check(info fs.FileInfo) error {
	if err := t.checkOwner(info); err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: %s can be written by others; look at what lies in it, then run chmod %o %s", t.unsafe, t.path, t.mode, t.path)
	}
	return nil
}

// checkOwner accepts what the user or root owns: who can act as root needs no trap.
func (t trusted) checkOwner(info fs.FileInfo) error {
	if uid, foreign := safefs.Foreign(info); foreign {
		return fmt.Errorf("%w: %s belongs to user %d; remove it, or choose another %s", t.unsafe, t.path, uid, t.option)
	}
	return nil
}
