package podworkers

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/model"
)

// Hold lets no Sync pass begin until Resume, and cuts short those that run: the machine shuts down.
func (w *Workers) Hold() {
	w.held = true
	for _, x := range w.workers {
		if x.running != nil && x.running.Kind == Sync {
			x.stale = true
		}
	}
}

// Stop stops a pod within so many seconds, until Resume. One that is being deleted has no longer for
// it. It has an effect while the workers are held, and once.
func (w *Workers) Stop(now time.Time, uid types.UID, grace int64) {
	x := w.workers[uid]
	switch {
	case x == nil || !w.held || x.stop != nil || x.stopped:
	case x.ending:
		w.Remove(now, x.ref, &grace)
	default:
		x.stop, x.due = &grace, earlier(x.due, now)
	}
}

// Stopped reports whether a pod has stopped, is gone, or was never made because another has its name.
func (w *Workers) Stopped(uid types.UID) bool {
	x := w.workers[uid]
	return x == nil || x.stopped || w.occupant(x) != nil
}

// Resume ends Hold: what was stopped is started again.
func (w *Workers) Resume(now time.Time) {
	w.held = false
	for _, x := range w.workers {
		x.stop, x.stopped = nil, false
		x.replace(now)
	}
}

// waits reports whether a pod gets no pass while the workers are held: it is not to stop yet, or has
// stopped.
func (w *Workers) waits(x *worker) bool { return w.held && (x.stop == nil || x.stopped) }

// Evict ends a pod, and cuts short what is done for it. It reports whether that is possible: a pod that
// is being deleted or stopped goes anyway, and one that has not begun has nothing.
func (w *Workers) Evict(now time.Time, uid types.UID, why *model.Eviction) bool {
	x := w.workers[uid]
	if x == nil || x.ending || x.forgotten || !x.began || w.held {
		return false
	}
	x.evict = why
	x.replace(now)
	return true
}
