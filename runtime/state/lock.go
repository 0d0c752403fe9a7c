package state

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/safefs"
)

// Lock waits for the pod's lock until the context ends, and then returns a *filelock.LockedError. It takes a free lock
// even if the context has already ended.
func (p Pod) Lock(ctx context.Context) (*filelock.Lock, error) {
	return p.layout.Locks().Pod(ctx, p, func(string) {})
}

// lockFile is the file that a process locks while it works on the pod.
func (p Pod) lockFile() string { return p.layout.Locks().file(string(p.uid)) }

// LockLogs locks the logs of a container against other rotations until the file is closed. It returns nil if they are
// locked. The lock of the pod would not do: a pass can hold it for a long time, while containers go on writing. Nor
// would one on the logs, because other programs and users can read those, and thus could lock them.
func LockLogs(p Pod, container string) (*os.File, error) {
	path, err := p.TerminationLogs(container).Dir()
	if err != nil {
		return nil, err
	}
	pod, err := p.Open(p.Dir())
	if err != nil {
		return nil, err
	}
	defer pod.Close() //nolint:errcheck // A handle on a directory.
	// Containers without a termination message have no directory yet. A deleted pod gets none.
	dir, err := pod.MakeSub(podDirMode, podDirMode, filepath.Base(filepath.Dir(path)), container)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	file, err := dir.Reader()
	if err != nil {
		return nil, err
	}
	if err = lockFile(file, unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return file, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = nil
	}
	return nil, errors.Join(err, file.Close())
}

// Names of podctl's own locks. They lie beside those of pods. A uid cannot contain an underscore (statedir.CheckName),
// so the names cannot collide.
const (
	lockOwn = "_"
	lockIDs = lockOwn + "ids"
	// lockPorts is taken from the check of used ports until new ones are recorded. A process may take it while it holds
	// a pod's lock, but not the reverse.
	lockPorts = lockOwn + "ports"
	// lockNode is that of the admission of pods. A process may take it while it holds a pod's lock or the ports lock,
	// but not the reverse.
	lockNode      = lockOwn + "node"
	lockObjects   = lockOwn + "objects"
	lockWorkloads = lockOwn + "workloads"
	lockServices  = lockOwn + "services"
	lockAgent     = lockOwn + "agent"
	lockClaims    = lockOwn + "claims"
)

const lockSuffix = ".lock"

// Locks holds the locks of the state directory: one for each pod, and those for shared data.
type Locks struct{ layout Layout }

// Pod waits for the lock of a pod like Pod.Lock. If that takes longer than filelock.Patience, it calls tell once with
// the holder.
func (s Locks) Pod(ctx context.Context, p Pod, notify func(holder string)) (*filelock.Lock, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	lock, err := s.take(ctx, filelock.File{Path: p.lockFile(), Keeps: p.HasDir}, notify)
	if lock != nil {
		// Leftovers of a killed writer do no harm, and the next holder tries again.
		_ = errors.Join(
			p.Checkpoint().removeUnfinished(),
			p.Hooks().clear(),
			p.layout.dir().Remove(p.History().unfinished()),
		)
	}
	return lock, err
}

// IDs locks the ranges of user ids. A process may take it while it holds a pod's lock, but not the reverse.
func (s Locks) IDs(ctx context.Context) (*filelock.Lock, error) {
	return s.takeOwn(ctx, lockIDs, "the table of user ids")
}

// claims locks the directories of claims: to create one, or from the last check of its use until it is moved away for
// removal. A process may take it while it holds a pod's lock, but not the reverse.
func (s Locks) claims(ctx context.Context) (*filelock.Lock, error) {
	return s.takeOwn(ctx, lockClaims, "the directories of claims")
}

// Agent locks the state directory for one agent. It does not wait for another agent: the error names it.
func (s Locks) Agent(ctx context.Context) (*filelock.Lock, error) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return s.takeOwn(ctx, lockAgent, "the state directory "+s.layout.Root)
}

func (s Locks) dir() string { return filepath.Join(s.layout.Root, "locks") }

// file returns the file of a lock by its name. For a pod the name is its uid.
func (s Locks) file(name string) string { return filepath.Join(s.dir(), name+lockSuffix) }

func (s Locks) make() error {
	return safefs.Wrapf(s.layout.dir().MkdirAll(s.dir(), 0o700), "creating the lock")
}

// take creates the directory and waits for a lock.
func (s Locks) take(ctx context.Context, of filelock.File, notify func(holder string)) (*filelock.Lock, error) {
	if err := s.make(); err != nil {
		return nil, err
	}
	of.Command, of.In = s.layout.Command, s.layout.dir().In
	return filelock.Take(ctx, of, notify)
}

// takeOwn takes a lock that belongs to no pod. It removes leftovers of a holder that was killed while writing.
func (s Locks) takeOwn(ctx context.Context, name, what string) (*filelock.Lock, error) {
	lock, err := s.take(ctx, filelock.File{Path: s.file(name)}, func(string) {})
	if locked := (*filelock.LockedError)(nil); errors.As(err, &locked) {
		locked.What = what
	}
	if lock != nil {
		for _, unfinished := range s.unfinished(name) {
			_ = s.layout.dir().Remove(unfinished) // It does no harm, and the next holder tries again.
		}
	}
	return lock, err
}

// unfinished returns the temporary files that the holder of a lock writes before they replace others.
func (s Locks) unfinished(name string) []string {
	switch name {
	case lockObjects:
		return []string{s.layout.Objects().unfinished()}
	case lockWorkloads:
		return []string{s.layout.Workloads().unfinished()}
	case lockServices:
		var files []string
		for _, f := range s.layout.serviceFiles() {
			files = append(files, f.unfinished())
		}
		return files
	default:
		return nil
	}
}

// Sweep removes leftovers of processes that were killed at the end of their work: files of free locks, and empty
// directories of pods. It keeps the locks of pods with a checkpoint. It does not wait for locks.
func (s Locks) Sweep(ctx context.Context) error {
	// With an ended context only a free lock is taken.
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	entries, err := s.layout.dir().Entries(s.dir())
	for _, entry := range entries {
		if name, is := strings.CutSuffix(entry.Name(), lockSuffix); is {
			err = errors.Join(err, s.sweep(ctx, name))
		}
	}
	return err
}

func (s Locks) sweep(ctx context.Context, name string) error {
	var lock *filelock.Lock
	var err error
	if strings.HasPrefix(name, lockOwn) {
		lock, err = s.takeOwn(ctx, name, "")
	} else {
		lock, err = s.sweepPod(ctx, s.layout.Pod(types.UID(name)))
	}
	switch {
	case errors.As(err, new(*filelock.LockedError)):
		return nil
	case lock == nil:
		return err
	}
	return errors.Join(err, lock.Unlock())
}

// sweepPod removes the directory of a pod if it is empty. It returns the pod's lock, which the caller must release, or
// nil for a pod with a checkpoint.
func (s Locks) sweepPod(ctx context.Context, p Pod) (*filelock.Lock, error) {
	known, err := p.Checkpoint().Exists()
	if known || err != nil {
		return nil, err
	}
	lock, err := p.Lock(ctx)
	if err == nil {
		err = s.layout.dir().RemoveIfEmpty(p.Dir()) // Housekeeping removes other leftovers.
	}
	return lock, err
}

// RuntimeLockDir is the directory of the locks of runtimes, shared by agents of all state directories.
const RuntimeLockDir = "/run"

// Runtime locks a container runtime for one agent, across state directories. The lock lies in a directory that all
// agents share. Runtime does not wait for another agent: it returns a *filelock.LockedError that names its state
// directory.
func (s Locks) Runtime(ctx context.Context, dir, endpoint string) (*filelock.Lock, error) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	name := fmt.Sprintf("podctl-agent-%x%s", sha256.Sum256([]byte(resolved(endpoint))), lockSuffix)
	words := []string{"podctl", "agent", "of", s.layout.Root}
	return filelock.Take(ctx, filelock.File{Path: filepath.Join(dir, name), Command: words}, func(string) {})
}

// resolved returns an endpoint without links, so that two paths to one socket are equal.
func resolved(endpoint string) string {
	path := strings.TrimPrefix(endpoint, "unix://")
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}
