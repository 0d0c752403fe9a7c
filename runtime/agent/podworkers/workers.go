package podworkers

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Kind is what a pass is for.
type Kind string

// The kinds of passes.
const (
	// Sync brings a pod to the state of its manifest.
	Sync Kind = "sync"
	// Terminate stops a pod and removes it.
	Terminate Kind = "terminate"
	// Stop stops a pod that is to run again later.
	Stop Kind = "stop"
	// Evict ends a pod to get back what it uses.
	Evict Kind = "evict"
)

// Pass is one pass over one pod.
type Pass struct {
	Kind Kind
	Ref  model.PodRef
	// Pod is what a Sync pass brings about.
	Pod *podspec.Desired
	// Again is set if something of the pod has been there: it is not its first pass.
	Again bool
	// Grace is how many seconds containers have to stop in a Terminate or Stop pass; nil means as
	// the pod says.
	Grace *int64
	// Eviction is why the pod is evicted in an Evict pass.
	Eviction *model.Eviction
}

// Result is how a pass ended.
type Result struct {
	// Failed reports that the pass, or a step of it, failed.
	Failed bool
	// Pending reports that the pass did something: another sees what came of it, and does the rest.
	Pending bool
	// Until is the first moment at which something changes by itself: the end of a restart
	// delay, a deadline, a hold. Zero means none is known.
	Until time.Time
	// Recheck is how long after the pass it is worth looking whether what holds the pod has ended; zero if
	// the usual time is soon enough.
	Recheck time.Duration
}

// Workers has one worker for each pod. Its methods are called one at a time.
type Workers struct {
	roster

	settings Settings
	// held reports that no Sync pass begins.
	held bool
}

// New makes a set without pods.
func New(s Settings) *Workers {
	s.Resync, s.RetryAfter = cmp.Or(s.Resync, resync), cmp.Or(s.RetryAfter, retryAfter)
	return &Workers{settings: s, roster: roster{workers: map[types.UID]*worker{}}}
}

// worker is one pod, from its first update until it is gone.
type worker struct {
	ref     model.PodRef
	arrived int
	// wanted is the pod as the last update has it; nil for one of which only the deletion is known.
	wanted *podspec.Desired
	// ending reports that the pod is to be deleted, within grace seconds if that is set.
	ending bool
	grace  *int64
	// again is the pod as it was wanted anew while it was being deleted.
	again *podspec.Desired
	// began reports that a pass of the pod has begun since it came.
	began bool
	// running is the pass that runs now; nil for none. stale reports that it is for what is no
	// longer wanted, cut that it has been told so.
	running    *Pass
	stale, cut bool
	// forgotten reports that nobody wants to hear of the pod any more once its pass has ended.
	forgotten bool
	// pulls counts the images that the pass pulls now. aside reports that it does not count as one that
	// does something, back that it wants to go on after a pull.
	pulls       int
	aside, back bool
	// stop is how many seconds the pod has to stop; nil if it is not to. stopped reports that it has.
	stop    *int64
	stopped bool
	// evict is why the pod is to be evicted; nil if it is not.
	evict *model.Eviction
	// busy counts the passes that did something, one after the other.
	busy int
	// due is when the next pass begins.
	due time.Time
}

// Update says that a source wants a pod so. It replaces what was wanted before. A pod that is
// being deleted is made again after its end.
func (w *Workers) Update(now time.Time, pod *podspec.Desired) {
	ref := model.RefOf(pod.Pod)
	x := w.workers[ref.UID]
	if x == nil {
		w.dropWaiting(ref)
		x = w.add(ref)
		x.wanted = pod
		return
	}
	x.forgotten = false
	switch {
	case x.ending:
		x.again = pod
	case x.wanted == pod:
	case x.wanted != nil && x.wanted.SameAs(pod) && x.wanted.Keeper == pod.Keeper:
		// Its file may have another name now. Another source has to be noted, because it decides who may delete the pod.
		x.wanted = pod
	case w.held:
		x.wanted = pod
	default:
		x.wanted = pod
		x.replace(now)
	}
}

// Remove says that a pod is to be deleted, within so many seconds if grace is set. A deletion is
// never taken back; its grace period can only become shorter, and is one second at least
// (kubelet: calculateEffectiveGracePeriod).
func (w *Workers) Remove(now time.Time, ref model.PodRef, grace *int64) {
	x := w.workers[ref.UID]
	if x == nil {
		// It is there, although it was not made here: it waits for no name.
		x = w.add(ref)
		x.began = true
	}
	x.again, x.forgotten = nil, false
	if !x.ending && !x.began && w.occupant(x) != nil {
		// It waited for its name, and has never been made.
		delete(w.workers, ref.UID)
		return
	}
	shorter := grace != nil && (x.grace == nil || max(*grace, 1) < *x.grace)
	if shorter {
		x.grace = new(max(*grace, 1))
	}
	if !x.ending || shorter {
		x.ending = true
		x.replace(now)
	}
}

// Forget drops a pod that somebody else has taken away, or looks after from now on. A pass of it
// that runs comes to its end first; until then no other begins, also if the pod is wanted again.
func (w *Workers) Forget(uid types.UID) {
	x := w.workers[uid]
	if x == nil || x.running == nil {
		delete(w.workers, uid)
		return
	}
	x.forgotten, x.again = true, nil
}

// MadeNothing says that nothing is there of a pod, so that it waits for one of its name that is there. It changes nothing
// of a pod that is being deleted, or whose pass runs.
func (w *Workers) MadeNothing(uid types.UID) {
	if x := w.workers[uid]; x != nil && x.running == nil && !x.ending {
		x.began = false
	}
}

// Wake says that something happened to a pod. It is looked at as soon as its pass has ended.
func (w *Workers) Wake(now time.Time, uid types.UID) {
	if x := w.workers[uid]; x != nil {
		x.due = earlier(x.due, now)
	}
}

// WakeAll wakes every pod: the runtime is back.
func (w *Workers) WakeAll(now time.Time) {
	for uid := range w.workers {
		w.Wake(now, uid)
	}
}

// Done says how the pass of a pod ended.
func (w *Workers) Done(now time.Time, uid types.UID, result Result) {
	x := w.workers[uid]
	if x == nil || x.running == nil {
		return
	}
	pass, stale := x.running, x.stale
	x.running, x.stale, x.cut = nil, false, false
	x.pulls, x.aside, x.back = 0, false, false
	switch {
	case x.forgotten:
		delete(w.workers, uid)
	case pass.Kind == Terminate && !result.Failed:
		w.ended(x)
	case pass.Kind == Stop && !result.Failed && !stale:
		x.stopped = true
	case stale:
		x.due = earlier(x.due, now)
	case pass.Kind == Stop:
		// There is little time for another try.
		x.due = earlier(x.due, now.Add(busyPause))
	default:
		x.due = earlier(x.due, w.settings.nextLook(now, x, result))
	}
}

// ended forgets a pod that is gone, or makes it anew.
func (w *Workers) ended(x *worker) {
	delete(w.workers, x.ref.UID)
	if x.again != nil {
		w.add(x.ref).wanted = x.again
	}
}

// State is where a pod is.
type State struct {
	Ref model.PodRef
	// Kind is what its pass is for that runs; empty if none does.
	Kind Kind
	// Ending reports whether the pod is being deleted.
	Ending bool
	// Due is when it is looked at next, if nothing wakes it; zero while a pass runs and no other
	// is due after it.
	Due time.Time
	// WaitsFor is the pod of the same name that has to be gone first; nil for none.
	WaitsFor *model.PodRef
}

// States lists all pods by name.
func (w *Workers) States() []State {
	list := make([]State, 0, len(w.workers))
	for _, x := range w.workers {
		s := State{Ref: x.ref, Ending: x.ending}
		if x.running != nil {
			s.Kind = x.running.Kind
		}
		if x.due != never() {
			s.Due = x.due
		}
		if other := w.occupant(x); other != nil {
			s.WaitsFor = &other.ref
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b State) int { return a.Ref.Compare(b.Ref) })
	return list
}

// Knows reports whether a pod has a worker.
func (w *Workers) Knows(uid types.UID) bool {
	x := w.workers[uid]
	return x != nil && !x.forgotten
}

// Making reports whether a Sync pass of a pod runs.
func (w *Workers) Making(uid types.UID) bool {
	x := w.workers[uid]
	return x != nil && x.running != nil && x.running.Kind == Sync
}

// Ending reports whether a pod is being deleted.
func (w *Workers) Ending(uid types.UID) bool { return w.workers[uid] != nil && w.workers[uid].ending }

// Next begins the passes that are due. It returns them, the pods whose passes are to be cut short,
// each once, and when there is something to do again if nothing is told until then; zero for never.
func (w *Workers) Next(now time.Time) (begin []Pass, cut []types.UID, wake time.Time) {
	free := w.freeSyncs()
	for _, x := range w.byDue() {
		switch {
		case x.running != nil && x.stale && !x.cut:
			x.cut = true
			cut = append(cut, x.ref.UID)
		case x.running != nil, !x.ending && (w.waits(x) || w.occupant(x) != nil):
		case x.due.After(now):
			if wake.IsZero() || x.due.Before(wake) {
				wake = x.due
			}
		case x.ending, x.stop != nil, x.evict != nil:
			begin = append(begin, x.begin())
		case free != 0:
			free--
			begin = append(begin, x.begin())
		}
	}
	return begin, cut, wake
}

// freeSyncs is how many Sync passes may begin; negative means any number.
func (w *Workers) freeSyncs() int {
	if w.settings.Parallel == 0 {
		return -1
	}
	free := w.settings.Parallel
	for _, x := range w.workers {
		if x.running != nil && x.running.Kind == Sync && !x.aside {
			free--
		}
	}
	return max(free, 0)
}

// begin makes the pass of what is wanted now.
func (x *worker) begin() Pass {
	p := Pass{Kind: Sync, Ref: x.ref, Pod: x.wanted, Again: x.began}
	switch {
	case x.ending:
		p = Pass{Kind: Terminate, Ref: x.ref, Grace: x.grace}
	case x.stop != nil:
		p.Kind, p.Grace = Stop, x.stop
	case x.evict != nil:
		p.Kind, p.Eviction, x.evict = Evict, x.evict, nil
	}
	x.running, x.began, x.due = &p, true, never()
	return p
}

// replace makes the next pass one for what is wanted now, at once, and the one that runs stale.
func (x *worker) replace(now time.Time) {
	x.stale = x.running != nil
	x.due = earlier(x.due, now)
}
