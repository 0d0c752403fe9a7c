package podworkers

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/runtime/model"
)

// Hold prevents new Sync passes until Resume, and cuts running ones short, because the machine shuts down.
func (w *Workers) Hold() {
	w.held = true
	for _, x := range w.workers {
		if x.running != nil && x.running.Kind == Sync {
			x.stale = true
		}
	}
}

// Stop stops a pod within grace seconds, until Resume. With fail, the pod ends for this reason instead, and does not
// run again. It limits the grace period of a pod that is being deleted. It has an effect only while the workers are
// held, and only once.
func (w *Workers) Stop(now time.Time, uid types.UID, grace int64, fail *model.Eviction) {
	x := w.workers[uid]
	switch {
	case x == nil || !w.held || x.stop != nil || x.stopped:
	case x.ending:
		w.remove(now, x, &grace)
	case x.ends:
		w.End(now, x.wanted, grace)
	default:
		x.stop, x.fail, x.due = &grace, fail, earlier(x.due, now)
	}
}

// Stopped reports whether a pod has stopped, is gone, or never started because another pod has its name.
func (w *Workers) Stopped(uid types.UID) bool {
	x := w.workers[uid]
	return x == nil || x.stopped || x.ended || w.nameHolder(x) != nil
}

// Resume ends Hold and starts the stopped pods again.
func (w *Workers) Resume(now time.Time) {
	w.held = false
	for _, x := range w.workers {
		x.stop, x.fail, x.stopped = nil, nil, false
		x.edit(now)
	}
}

// isHeld reports whether a pod gets no pass while the workers are held: it must not stop yet, or has stopped.
func (w *Workers) isHeld(x *worker) bool { return w.held && (x.stop == nil || x.stopped) }

// Evict ends a pod, and cuts its running pass short. If the pod is being deleted, it only shortens the grace period
// (kubelet: podWorkers.UpdatePod). It returns false if it changes nothing, because the pod uses nothing, or ends as
// soon anyway.
func (w *Workers) Evict(now time.Time, uid types.UID, why *model.Eviction) bool {
	if w.held || !w.Evictable(uid) {
		return false
	}
	x, grace := w.workers[uid], why.GracePeriodSeconds
	switch {
	case !x.leaves():
		x.evict = why
	case x.grace == nil && max(grace, 1) >= x.ownGrace() || !x.shorten(&grace):
		return false
	}
	x.replace(now)
	return true
}

// ownGrace returns the grace period in the pod's manifest, in seconds.
func (x *worker) ownGrace() int64 {
	return ptr.Deref(x.wanted.Pod.Spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
}

// Evictable reports whether an eviction could end a pod, or end it sooner.
func (w *Workers) Evictable(uid types.UID) bool {
	x := w.workers[uid]
	return x != nil && x.started && !x.forgotten && !x.ended && (!x.leaves() || x.grace == nil || *x.grace > 1)
}
