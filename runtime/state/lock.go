package state

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/filelock"
)

// Lock waits for the pod's lock until the context ends, and returns a
// *filelock.LockedError then. The lock is taken if it is free, even when the context has
// ended already.
func (p Pod) Lock(ctx context.Context) (*filelock.Lock, error) {
	return p.layout.Locks().Pod(ctx, p, func(string) {})
}

// lockFile is the file that a process holds while it works on the pod.
func (p Pod) lockFile() string { return p.layout.Locks().file(string(p.uid)) }

// The locks of podctl's own. They are kept beside those of pods, and no uid may have an
// underscore in it (statedir.CheckName).
const (
	lockOwn       = "_"
	lockIDs       = lockOwn + "ids"
	lockPorts     = lockOwn + "ports"
	lockNode      = lockOwn + "node"
	lockObjects   = lockOwn + "objects"
	lockWorkloads = lockOwn + "workloads"
	lockServices  = lockOwn + "services"
	lockAgent     = lockOwn + "agent"
	lockClaims    = lockOwn + "claims"
)

// lockSuffix ends the names of all files of locks.
const lockSuffix = ".lock"

// Locks are the locks of the state directory: one for each pod, and those of what all pods share.
type Locks struct{ layout Layout }

// Pod waits for the lock of a pod as Pod.Lock does, and tells once who holds it if that takes longer than
// filelock.Patience.
func (s Locks) Pod(ctx context.Context, p Pod, tell func(holder string)) (*filelock.Lock, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	lock, err := s.take(ctx, filelock.File{Path: p.lockFile(), Keeps: p.HasDir}, tell)
	if lock != nil {
		// What a killed writer left harms nobody, and the next one tries again.
		_ = errors.Join(p.Checkpoint().removeUnfinished(), p.Hooks().clear(), p.layout.dir().Remove(p.History().unfinished()))
	}
	return lock, err
}

// Ports takes the ports of the node for this process alone: from the look at who has
// which until it is written down who takes some. Who has a pod's lock may ask for it, and not
// the other way round.
func (s Locks) Ports(ctx context.Context) (*filelock.Lock, error) {
	return s.takeOwn(ctx, lockPorts, "the table of the node's ports")
}

// Node takes the admission of pods for this process alone. Who has a pod's lock, or that of the
// ports, may ask for it, and not the other way round.
func (s Locks) Node(ctx context.Context) (*filelock.Lock, error) {
	return s.takeOwn(ctx, lockNode, "the admission of pods")
}

// IDs takes the ranges of user ids for this process alone. Who has a pod's lock may ask
// for it, and not the other way round.
func (s Locks) IDs(ctx context.Context) (*filelock.Lock, error) {
	return s.takeOwn(ctx, lockIDs, "the table of user ids")
}

// claims takes the directories of claims for this process alone: to make one, or from the last look whether one is used until
// it is gone. Who has a pod's lock may ask for it, and not the other way round.
func (s Locks) claims(ctx context.Context) (*filelock.Lock, error) {
	return s.takeOwn(ctx, lockClaims, "the directories of claims")
}

// Agent takes the state directory for one agent. Another agent is not waited for: the error
// names it.
func (s Locks) Agent(ctx context.Context) (*filelock.Lock, error) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return s.takeOwn(ctx, lockAgent, "the state directory "+s.layout.Root)
}

func (s Locks) dir() string { return filepath.Join(s.layout.Root, "locks") }

// file is the file of a lock by its name: that of a pod is its uid.
func (s Locks) file(name string) string { return filepath.Join(s.dir(), name+lockSuffix) }

func (s Locks) make() error {
	if err := s.layout.dir().MkdirAll(s.dir(), 0o700); err != nil {
		return fmt.Errorf("creating the lock: %w", err)
	}
	return nil
}

// take makes the directory and waits for a lock.
func (s Locks) take(ctx context.Context, of filelock.File, tell func(holder string)) (*filelock.Lock, error) {
	if err := s.make(); err != nil {
		return nil, err
	}
	of.Command, of.In = s.layout.Command, s.layout.dir().In
	return filelock.Take(ctx, of, tell)
}

// takeOwn takes a lock that is no pod's, and removes what the last holder left if it was killed while it wrote.
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

// unfinished are the files that the holder of a lock writes before they replace others.
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

// Sweep removes what a process leaves that is killed at the end of its work: the files of locks that nobody
// holds, of pods that are gone and of what all pods share, and the empty directories of such pods. It waits
// for nobody.
func (s Locks) Sweep(ctx context.Context) error {
	// A context that has ended takes a lock that is free.
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

// sweepPod removes the directory of a pod if it is empty, and returns the pod's lock for the caller to let go
// of; nil for a pod that has a checkpoint.
func (s Locks) sweepPod(ctx context.Context, p Pod) (*filelock.Lock, error) {
	known, err := p.Checkpoint().Exists()
	if known || err != nil {
		return nil, err
	}
	lock, err := p.Lock(ctx)
	if err == nil {
		err = s.layout.dir().RemoveIfEmpty(p.Dir()) // What is left is work of housekeeping.
	}
	return lock, err
}

// RuntimeLockDir is where the locks of runtimes lie, for agents of all state directories.
const RuntimeLockDir = "/run"

// Runtime takes a container runtime for one agent, whatever state directory others have. The lock lies in a directory that all
// agents share. Another agent is not waited for: the error is a *filelock.LockedError then, and names its state directory.
func (s Locks) Runtime(ctx context.Context, dir, endpoint string) (*filelock.Lock, error) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	name := fmt.Sprintf("podctl-agent-%x%s", sha256.Sum256([]byte(resolved(endpoint))), lockSuffix)
	words := []string{"podctl", "agent", "of", s.layout.Root}
	return filelock.Take(ctx, filelock.File{Path: filepath.Join(dir, name), Command: words}, func(string) {})
}

// resolved is an endpoint without links: two that lead to one socket are one.
func resolved(endpoint string) string {
	path := strings.TrimPrefix(endpoint, "unix://")
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}
