package state

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/model"
)

// Locker takes locks on pods and reports the holder it waits for.
type Locker struct {
	Layout Layout
	// Timeout limits the wait for another process that works on the same pod. Zero means until the context ends.
	Timeout time.Duration
	// Waiting is called with the holder if a wait takes long.
	Waiting func(text string)
}

// Lock waits for other processes that work on the pod and locks it.
func (l *Locker) Lock(ctx context.Context, ref model.PodRef) (*filelock.Lock, error) {
	ctx, cancel := l.timeout(ctx)
	defer cancel()
	lock, err := l.Layout.Locks().Pod(ctx, l.Layout.Pod(ref.UID), func(holder string) {
		l.Waiting(fmt.Sprintf("pod %s: waiting for %s", ref, holder))
	})
	if locked := (*filelock.LockedError)(nil); errors.As(err, &locked) {
		locked.What = "pod " + ref.String()
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w; podctl does nothing without the lock", ref, err)
	}
	return lock, nil
}

func (l *Locker) timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, l.Timeout, fmt.Errorf("gave up after %s (--lock-timeout)", l.Timeout))
}

// ReservePorts locks the node's ports between the check for free ports and the record of the pod's ports, after which
// the caller calls free. It does nothing for a pod without host ports.
func (l *Locker) ReservePorts(ctx context.Context, desired *podspec.Desired) (free func(), err error) {
	if desired == nil || len(podspec.HostPorts(desired.Pod)) == 0 {
		return func() {}, nil
	}
	return l.reserve(ctx, model.RefOf(desired.Pod), lockPorts, "the table of the node's ports")
}

// ReserveNode locks the admission between the check of the node's free resources and the record of this pod, after
// which the caller calls free.
func (l *Locker) ReserveNode(ctx context.Context, ref model.PodRef) (free func(), err error) {
	return l.reserve(ctx, ref, lockNode, "the admission of pods")
}

func (l *Locker) reserve(ctx context.Context, ref model.PodRef, name, what string) (free func(), err error) {
	lock, err := l.takeOwn(ctx, name, what)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", ref, err)
	}
	return sync.OnceFunc(func() { _ = lock.Unlock() }), nil
}

// LockObjects locks the stored objects for changes. Reading one needs no lock.
func (l *Locker) LockObjects(ctx context.Context) (*filelock.Lock, error) {
	return l.takeOwn(ctx, lockObjects, "the store of ConfigMaps, Secrets, claims and Services")
}

// LockWorkloads locks the stored workloads for changes.
func (l *Locker) LockWorkloads(ctx context.Context) (*filelock.Lock, error) {
	return l.takeOwn(ctx, lockWorkloads, "the store of workloads")
}

// LockServices locks the node's rules and names of Services for changes.
func (l *Locker) LockServices(ctx context.Context) (*filelock.Lock, error) {
	return l.takeOwn(ctx, lockServices, "the rules and names of Services")
}

func (l *Locker) takeOwn(ctx context.Context, name, what string) (*filelock.Lock, error) {
	ctx, cancel := l.timeout(ctx)
	defer cancel()
	return l.Layout.Locks().takeOwn(ctx, name, what)
}
