package podworkers

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/model"
)

// roster is who is there, and who comes first.
type roster struct {
	workers map[types.UID]*worker
	// arrivals counts the pods that came, so that the first is served first.
	arrivals int
}

// byDue lists those that are due longest first, so that a pod that wakes often delays no other.
func (r *roster) byDue() []*worker {
	all := make([]*worker, 0, len(r.workers))
	for _, x := range r.workers {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *worker) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.arrived, b.arrived)) })
	return all
}

// add gives a pod a worker.
func (r *roster) add(ref model.PodRef) *worker {
	r.arrivals++
	x := &worker{ref: ref, arrived: r.arrivals}
	r.workers[ref.UID] = x
	return x
}

// occupant is the pod of the same name that has to be gone before a pod can be made: one that is there,
// or that came before (kubelet: allowStaticPodStart).
func (r *roster) occupant(x *worker) *worker {
	if x.began {
		return nil
	}
	var first *worker
	for _, other := range r.workers {
		before := other != x && other.ref.SameName(x.ref) && (other.began || other.arrived < x.arrived)
		if before && (first == nil || other.arrived < first.arrived) {
			first = other
		}
	}
	return first
}

// dropWaiting forgets the pods that wait for a name that a newer pod is to have.
func (r *roster) dropWaiting(ref model.PodRef) {
	for uid, x := range r.workers {
		if x.ref.SameName(ref) && r.occupant(x) != nil {
			delete(r.workers, uid)
		}
	}
}
