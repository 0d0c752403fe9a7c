package probe

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/state"
)

// Change changes a checkpoint and adds events. It reports whether to write the checkpoint.
type Change func(*state.Checkpoint, *events.Recorder) bool

// Held are the checkpoints that passes of this process hold. A pass has the lock of its pod while it pulls images and
// stops containers. Probes run in the meantime, and the pass records their results.
type Held struct {
	mu sync.Mutex
	// takes passes a change to the pass of a pod. It returns false if the pass has ended.
	takes map[types.UID]func(Change) (taken bool, err error)
	// waiting cancels the wait for the lock of a pod when its pass can take a change.
	waiting map[types.UID]map[*context.CancelFunc]bool
}

// Hold lets a pass take changes of its pod's checkpoint, until release is called.
func (h *Held) Hold(uid types.UID, take func(Change) (taken bool, err error)) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.takes == nil {
		h.takes = map[types.UID]func(Change) (bool, error){}
	}
	h.takes[uid] = take
	for cancel := range h.waiting[uid] {
		(*cancel)()
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.takes, uid)
	}
}

// change passes a change to the pass that holds the checkpoint. It reports whether there is such a pass.
func (h *Held) change(uid types.UID, change Change) (taken bool, err error) {
	h.mu.Lock()
	take := h.takes[uid]
	h.mu.Unlock()
	if take == nil {
		return false, nil
	}
	return take(change)
}

// waitForPass returns a context that ends when a pass holds the checkpoint of a pod.
func (h *Held) waitForPass(ctx context.Context, uid types.UID) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.takes[uid] != nil {
		cancel()
	}
	if h.waiting == nil {
		h.waiting = map[types.UID]map[*context.CancelFunc]bool{}
	}
	if h.waiting[uid] == nil {
		h.waiting[uid] = map[*context.CancelFunc]bool{}
	}
	h.waiting[uid][&cancel] = true
	return ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(h.waiting[uid], &cancel); len(h.waiting[uid]) == 0 {
			delete(h.waiting, uid)
		}
		cancel()
	}
}
