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

// Locker takes locks on pods, and says whom it waits for.
type Locker struct {
	Layout Layout
	// Timeout is how long another process that works on the same pod is waited for; zero
	// means as long as the context lasts.
	Timeout time.Duration
	// Waiting is called when that takes long, with whom the wait is for.
	Waiting func(text string)
}

// Lock takes the pod for this process alone, once others that work on it are done.
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
		return nil, fmt.Errorf("pod %s: %w; without the lock nothing is done", ref, err)
	}
	return lock, nil
}

// timeout bounds the wait for a lock.
func (l *Locker) timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, l.Timeout, fmt.Errorf("gave up after %s (--lock-timeout)", l.Timeout))
}

// ReservePorts keeps others from looking for free ports of the node between this pod's look
// and the moment in which it is written down that it takes some, when the caller frees them.
// A pod that needs none waits for nobody.
func (l *Locker) ReservePorts(ctx context.Context, desired *podspec.Desired) (free func(), err error) {
	if desired == nil || len(podspec.HostPorts(desired.Pod)) == 0 {
		return func() {}, nil
	}
	return l.reserve(ctx, model.RefOf(desired.Pod), l.Layout.Locks().Ports)
}

// ReserveNode keeps other pods from being admitted between the look at what is left of the node and
// the moment in which it is written down that this pod takes some, when the caller frees it.
func (l *Locker) ReserveNode(ctx context.Context, ref model.PodRef) (free func(), err error) {
	return l.reserve(ctx, ref, l.Layout.Locks().Node)
}

func (l *Locker) reserve(ctx context.Context, ref model.PodRef, take func(context.Context) (*filelock.Lock, error)) (free func(), err error) {
	ctx, cancel := l.timeout(ctx)
	defer cancel()
	lock, err := take(ctx)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", ref, err)
	}
	return sync.OnceFunc(func() { _ = lock.Unlock() }), nil
}

// LockObjects takes the stored objects for this process alone, to change
// them. Whoever only reads one needs no lock.
func (l *Locker) LockObjects(ctx context.Context) (*filelock.Lock, error) {
	return l.takeOwn(ctx, lockObjects, "the store of ConfigMaps, Secrets, claims and Services")
}

// LockWorkloads takes the objects that stand for pods for this process alone, to change them.
func (l *Locker) LockWorkloads(ctx context.Context) (*filelock.Lock, error) {
	return l.takeOwn(ctx, lockWorkloads, "the store of workloads")
}

// LockServices takes what the node does for Services for this process alone, to change it.
func (l *Locker) LockServices(ctx context.Context) (*filelock.Lock, error) {
	return l.takeOwn(ctx, lockServices, "the rules and names of Services")
}

func (l *Locker) takeOwn(ctx context.Context, name, what string) (*filelock.Lock, error) {
	ctx, cancel := l.timeout(ctx)
	defer cancel()
	return l.Layout.Locks().takeOwn(ctx, name, what)
}
