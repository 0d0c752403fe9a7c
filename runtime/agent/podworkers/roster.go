package podworkers

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// roster holds the workers and their order.
type roster struct {
	workers map[types.UID]*worker
	// arrivals counts the pods that were added, so that the first comes first.
	arrivals int
}

// byDue returns the workers by due time, so that a pod that wakes often does not delay others.
func (r *roster) byDue() []*worker {
	all := make([]*worker, 0, len(r.workers))
	for _, x := range r.workers {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *worker) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.arrived, b.arrived))
	})
	return all
}

// add creates a worker for a pod.
func (w *Workers) add(pod *podspec.Desired) *worker {
	w.arrivals++
	x := &worker{ref: model.RefOf(pod.Pod), arrived: w.arrivals, wanted: pod, byUID: w.settings.ByUID(pod.Owner)}
	w.workers[x.ref.UID] = x
	return x
}

// nameHolder returns the pod with the same name that must be gone before a pod can start: one that exists, or that was
// added earlier (kubelet: allowStaticPodStart).
func (r *roster) nameHolder(x *worker) *worker {
	if x.started || x.byUID {
		return nil
	}
	var first *worker
	for _, other := range r.workers {
		competes := other != x && !other.byUID && other.ref.SameName(x.ref)
		isBefore := other.started || other.arrived < x.arrived
		if competes && isBefore && (first == nil || other.arrived < first.arrived) {
			first = other
		}
	}
	return first
}

// dropWaiting drops the pods that wait for a name, because a newer pod gets it.
func (r *roster) dropWaiting(ref model.PodRef) {
	for uid, x := range r.workers {
		if x.ref.SameName(ref) && r.nameHolder(x) != nil {
			delete(r.workers, uid)
		}
	}
}

// remove deletes a pod (Workers.Remove).
func (r *roster) remove(now time.Time, x *worker, grace *int64) {
	x.recreate, x.forgotten = nil, false
	if !x.ending && !x.started && r.nameHolder(x) != nil {
		// The pod waited for its name, and was never created.
		delete(r.workers, x.ref.UID)
		return
	}
	shorter := x.shorten(grace)
	switch {
	case shorter, !x.ending && !x.ends:
		x.replace(now)
	case !x.ending:
		// The running pass ends the pod in its time. A Terminate pass follows.
		x.due = earlier(x.due, now)
	}
	x.ending = true
}

// Ref returns the name of a pod with a worker.
func (r *roster) Ref(uid types.UID) model.PodRef { return r.workers[uid].ref }

// Ending reports whether a pod is being deleted, or ends because its source deletes it.
func (r *roster) Ending(uid types.UID) bool { return r.workers[uid] != nil && r.workers[uid].leaves() }

// Syncing reports whether a Sync pass of a pod runs.
func (r *roster) Syncing(uid types.UID) bool {
	x := r.workers[uid]
	return x != nil && x.running != nil && x.running.Kind == Sync
}

// Starting reports whether a running pass of a pod may start a container.
func (r *roster) Starting(uid types.UID) bool { return r.Syncing(uid) && !r.workers[uid].startless }

// Planned records whether the plan of the running pass starts no container.
func (r *roster) Planned(uid types.UID, startless bool) {
	if x := r.workers[uid]; x != nil {
		x.startless = startless
	}
}

// Ended reports whether a pod has ended because its source deletes it, and only its records are left.
func (r *roster) Ended(uid types.UID) bool { return r.workers[uid] != nil && r.workers[uid].ended }
