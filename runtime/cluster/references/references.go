package references

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

const (
	// responseWait is how long a pass waits for the first answers of the API server (kubelet: objectCache.Get).
	responseWait = time.Second
	// idleTime is how long an object that is only in environments is watched after its last use. idleCheck is how often
	// that is checked, and how often failed copies are written again (kubelet: maxIdleTime, startRecycleIdleWatch).
	idleTime  = 5 * time.Minute
	idleCheck = time.Minute
	// maxObjects limits the objects that a pod names, and maxBytes their size together as JSON. The checkpoint of the
	// pod has them, too.
	maxObjects = 500
	maxBytes   = 40 << 20
)

// Settings configure the references. All fields are required.
type Settings struct {
	// Copies is the directory of the copies.
	Copies objects.Copies
	// Watch watches one object, renews one token or reads one claim, until the context ends. It passes the results to
	// the sink.
	Watch func(ctx context.Context, key state.ObjectKey, sink *Sink)
	// Stored returns the pods of the API server that have a record on this machine. ok is false if a record cannot be
	// read.
	Stored func() (pods []*podspec.Desired, ok bool)
	// HasEnded reports whether a pod has ended or is about to, by its record.
	HasEnded func(types.UID) bool
	// Wake requests a pass of a pod. It is called without locks.
	Wake func(types.UID)
	Now  func() time.Time
	Log  *slog.Logger
}

// References are the ConfigMaps, Secrets and claims that pods of the API server refer to. It implements
// objects.Provider. It is safe for concurrent use.
type References struct {
	settings Settings
	// ctx is the context of all watches.
	ctx  context.Context //nolint:containedctx // watches outlive the passes that start them
	stop context.CancelFunc
	// work are the running watches and removals.
	work sync.WaitGroup

	// mu guards the table. It is never held during input or output.
	mu    sync.Mutex
	table table
	// disk is held while copies are written or removed.
	disk sync.Mutex
}

// New returns the references without any pods. Watches run until Run ends.
func New(s Settings) *References {
	ctx, stop := context.WithCancel(context.Background())
	return &References{
		settings: s, ctx: ctx, stop: stop,
		table: table{objects: map[state.ObjectKey]*object{}, pods: map[types.UID]*user{}},
	}
}

// Run ends idle watches, and writes copies again that could not be written, until the context ends. It then ends all
// watches. At the start, it removes copies that no pod names any more.
func (r *References) Run(ctx context.Context) {
	defer r.work.Wait()
	defer r.end()
	r.removeLeftovers()
	ticker := time.NewTicker(idleCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.mu.Lock()
			r.table.endIdle(r.settings.Now(), idleTime)
			r.mu.Unlock()
			r.keepAgain()
		}
	}
}

// end ends all watches. None is started afterwards.
func (r *References) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
}

// Complete adds the current objects to a pod of the API server. It starts the watches of objects that no pod has named
// before, and waits up to a second for their first answers. Without an answer it uses the last copy. If there is none,
// the object is unread. It returns other pods as they are.
func (r *References) Complete(ctx context.Context, d *podspec.Desired) (*podspec.Desired, error) {
	if d == nil || !d.FromCluster() {
		return d, nil
	}
	if inMemory := r.settings.Copies.MemorySecrets; d.MemorySecrets != inMemory {
		other := *d
		other.MemorySecrets = inMemory
		d = &other
	}
	keys := namedObjects(d)
	if len(keys) > maxObjects {
		return d.WithShared(refuseAll(fmt.Sprintf(
			"the pod names %d ConfigMaps, Secrets and claims, which is more than %d", len(keys), maxObjects)))
	}
	read := r.begin(d, keys) //nolint:contextcheck // a watch outlives the pass that begins it
	r.await(ctx, keys)
	return d.WithShared(r.finder(d, read()))
}

// refuseAll returns a function that finds no object, for a reason.
func refuseAll(reason string) podspec.FindObject {
	return func(string, podspec.ObjectName) (*podspec.Object, error) {
		return nil, podspec.UnreadError{Reason: reason, Status: reason}
	}
}

// begin registers the objects of a pod and starts their watches. The result reads the objects, once.
func (r *References) begin(d *podspec.Desired, keys map[state.ObjectKey]bool) (read func() map[state.ObjectKey]object) {
	copies, uid := r.readCopies(keys), d.Pod.UID
	// A pod that ends keeps its watches until it has ended, but starts none.
	live := r.isLive(uid) || d.Pod.DeletionTimestamp == nil && !r.settings.HasEnded(uid)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeCopies(r.table.register(uid, keys, live))
	u, now := r.table.pods[uid], r.settings.Now()
	u.reading++
	for key := range keys {
		o := r.table.objects[key]
		if found := copies[key]; !o.known && found.known {
			o.value, o.known, o.size = found.value, true, found.size
			o.stored, o.isStored = found.stored, found.isStored
		}
		o.used = now
		if live && d.Pod.DeletionTimestamp == nil && o.watch == nil && !o.isFinal() && r.settings.Copies.CanExist(key) {
			r.watch(key, o, now)
		}
	}
	return func() map[state.ObjectKey]object {
		r.mu.Lock()
		defer r.mu.Unlock()
		u.reading--
		read := make(map[state.ObjectKey]object, len(keys))
		for key := range keys {
			if o := r.table.objects[key]; o != nil {
				read[key] = *o
			}
		}
		return read
	}
}

func (r *References) isLive(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.table.pods[uid]
	return u != nil && u.live
}

// await waits until all objects have an answer, for at most responseWait.
func (r *References) await(ctx context.Context, keys map[state.ObjectKey]bool) {
	timeout := time.NewTimer(responseWait)
	defer timeout.Stop()
	for key := range keys {
		for {
			news := r.news(key)
			if news == nil {
				break
			}
			select {
			case <-news:
			case <-timeout.C:
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// news returns the channel to wait for; nil if the object can be used.
func (r *References) news(key state.ObjectKey) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.table.objects[key]
	if o == nil {
		return nil
	}
	return o.wait(r.settings.Now(), responseWait)
}

// finder returns a function that finds the objects that were read.
func (r *References) finder(d *podspec.Desired, read map[state.ObjectKey]object) podspec.FindObject {
	size := 0
	for _, o := range read {
		size += o.size
	}
	if size > maxBytes {
		return refuseAll(fmt.Sprintf(
			"the ConfigMaps and Secrets of the pod have %d bytes, which is more than %d", size, maxBytes))
	}
	return func(_ string, name podspec.ObjectName) (*podspec.Object, error) {
		key := objects.CopyKey(d.Pod, name)
		switch o := read[key]; {
		case o.known:
			return objects.InPod(o.value, name)
		case !objects.InCluster(name.Kind) || !r.settings.Copies.CanExist(key):
			return nil, nil
		default:
			return nil, podspec.UnreadError{Reason: o.failure}
		}
	}
}

// NotePass checks after a pass whether the pod has ended: then it does not need its objects again. Their copies stay
// until it is gone. NotePass does not block.
func (r *References) NotePass(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u := r.table.pods[uid]; u == nil || !u.live {
		return
	}
	r.background(func() {
		if !r.settings.HasEnded(uid) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.table.release(uid)
	})
}

// background runs a function that Run waits for. The caller holds mu.
func (r *References) background(do func()) {
	if r.ctx.Err() == nil {
		r.work.Go(do)
	}
}

// Any reports whether one of the last known objects matches. It must not call r.
func (r *References) Any(matches func(state.ObjectKey, *podspec.Object) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, o := range r.table.objects {
		if o.value != nil && matches(key, o.value) {
			return true
		}
	}
	return false
}

// Forget records that a pod is gone. It does not block.
func (r *References) Forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeCopies(r.table.forget(uid))
}
