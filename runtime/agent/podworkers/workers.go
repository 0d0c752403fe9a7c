package podworkers

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Kind is the purpose of a pass.
type Kind string

// The kinds of passes.
const (
	// Sync applies the manifest of a pod.
	Sync Kind = "sync"
	// End ends a pod for good. Its records stay until a Terminate pass.
	End Kind = "end"
	// Terminate stops a pod and removes it.
	Terminate Kind = "terminate"
	// Stop stops a pod that will run again later.
	Stop Kind = "stop"
	// Evict ends a pod to free its resources.
	Evict Kind = "evict"
)

// Pass is one pass over one pod.
type Pass struct {
	Kind Kind
	Ref  model.PodRef
	// Pod is the manifest that a Sync pass applies. A Stop, Evict or End pass stops this pod.
	Pod *podspec.Desired
	// Repeated is set if this is not the first pass of the pod, so that parts of the pod may exist.
	Repeated bool
	// Grace is the time in seconds that containers have to stop in an End, Terminate or Stop pass. If nil, the pod's
	// own grace period is used.
	Grace *int64
	// Eviction is the reason of an Evict pass.
	Eviction *model.Eviction
}

// stops reports whether a pass stops a pod because the workers are held.
func (p *Pass) stops(x *worker) bool {
	return p.Kind == Stop || p.Eviction != nil && p.Eviction == x.fail
}

// continues reports whether another pass must continue an eviction: the first stops the pod, the second removes it. One
// that failed is repeated, because the pod may have stopped already.
func (p *Pass) continues(r Result) bool { return p.Kind == Evict && (r.Pending || r.Failed) }

// Result is the result of a pass.
type Result struct {
	// Failed reports that the pass, or one of its steps, failed.
	Failed bool
	// Pending reports that the pass made changes. Another pass must observe them and do the rest.
	Pending bool
	// Ended reports that the pod has ended for good, and that only its records are left.
	Ended bool
	// Until is the first time at which the passing of time changes something: the end of a restart delay, a deadline,
	// or a hold. It is zero if there is none.
	Until time.Time
	// Recheck is the time after which to check again whether the pod is still held. It is zero if the usual interval is
	// sufficient.
	Recheck time.Duration
}

// Workers has one worker for each pod. Its methods must not be called concurrently.
type Workers struct {
	roster

	settings Settings
	// held reports that no Sync pass begins.
	held bool
}

// New returns a set without pods.
func New(s Settings) *Workers {
	if s.ByUID == nil {
		s.ByUID = func(string) bool { return false }
	}
	return &Workers{settings: s, roster: roster{workers: map[types.UID]*worker{}}}
}

// worker is one pod, from its first update until it is gone.
type worker struct {
	ref     model.PodRef
	arrived int
	// byUID reports that the UID identifies the pod. It has no name that others wait for.
	byUID bool
	// wanted is the pod of the last update. If only the deletion is known, it is the deleted pod.
	wanted *podspec.Desired
	// ends reports that the pod must end for good, and ending that it must be deleted: both within grace seconds if
	// grace is set. ended reports that only its records are left.
	ends, ending, ended bool
	grace               *int64
	// recreate is the pod of an update that came while the pod was being deleted.
	recreate *podspec.Desired
	// started reports that a pass of the pod has begun since it was added.
	started bool
	// running is the running pass. It is nil if there is none. stale reports that the pass is for an outdated state.
	// cut reports that Next has returned the pod in cut.
	running    *Pass
	stale, cut bool
	// startless reports that the running pass starts no container.
	startless bool
	// forgotten reports that the worker is dropped when its pass has ended.
	forgotten bool
	// pulls counts the current image pulls of the pass. uncounted reports that the pass does not count against
	// Settings.Parallel. resuming reports that it wants to continue after a pull.
	pulls               int
	uncounted, resuming bool
	// stop is the time in seconds in which the pod must stop. It is nil if the pod must not stop. stopped reports that
	// the pod has stopped. fail is the reason if it must not run again.
	stop    *int64
	stopped bool
	fail    *model.Eviction
	// evict is the reason of a requested eviction. It is nil if there is none.
	evict *model.Eviction
	// busy counts consecutive passes that made changes.
	busy int
	// due is the time of the next pass.
	due time.Time
}

// Update sets the pod that a source wants, and replaces its earlier version. A pod that is being deleted is recreated
// after its end.
func (w *Workers) Update(now time.Time, pod *podspec.Desired) {
	x := w.workers[pod.Pod.UID]
	if x == nil {
		if !w.settings.ByUID(pod.Owner) {
			w.dropWaiting(model.RefOf(pod.Pod))
		}
		w.add(pod)
		return
	}
	x.forgotten, x.byUID = false, w.settings.ByUID(pod.Owner)
	switch {
	case x.ending:
		x.recreate = pod
	case x.ends:
		// It never runs again, but a later pass ends the newest version.
		x.wanted = pod
	case x.wanted == pod:
	case x.wanted.Owner == pod.Owner && pod.SameGeneration(x.wanted) && x.wanted.SameAs(pod):
		// The file may have another name now. Another source must be recorded, because it decides who may delete the
		// pod.
		x.wanted = pod
	case w.held:
		x.wanted = pod
	default:
		x.wanted = pod
		x.edit(now)
	}
}

// Remove deletes a pod, within grace seconds if grace is set. A deletion cannot be canceled. Its grace period can only
// become shorter, and is at least one second (kubelet: calculateEffectiveGracePeriod).
func (w *Workers) Remove(now time.Time, pod *podspec.Desired, grace *int64) {
	x := w.workers[pod.Pod.UID]
	if x == nil {
		// The pod exists, although it was not created here. It does not wait for its name.
		x = w.add(pod)
		x.started = true
	}
	w.remove(now, x, grace)
}

// End ends a pod for good within grace seconds. Like a deletion, an end cannot be canceled, and its grace period can
// only become shorter. Remove deletes the pod later.
func (w *Workers) End(now time.Time, pod *podspec.Desired, grace int64) {
	if x := w.workers[pod.Pod.UID]; x != nil && x.ending {
		w.remove(now, x, &grace)
		return
	}
	w.Update(now, pod)
	x := w.workers[pod.Pod.UID]
	if x.shorten(&grace) || !x.ends {
		x.ends = true
		x.replace(now)
	}
}

// shorten sets the grace period if it is the first or becomes shorter. It reports whether it did.
func (x *worker) shorten(grace *int64) bool {
	if grace == nil || x.grace != nil && max(*grace, 1) >= *x.grace {
		return false
	}
	x.grace = new(max(*grace, 1))
	return true
}

// Forget drops a pod that another process has deleted or manages from now on. A running pass finishes first. Until then
// no other pass begins, even if the pod is wanted again.
func (w *Workers) Forget(uid types.UID) {
	x := w.workers[uid]
	if x == nil || x.running == nil {
		delete(w.workers, uid)
		return
	}
	x.forgotten, x.recreate = true, nil
}

// MarkAbsent notes that a pod does not exist yet, so that it waits if another pod has its name. It has no effect on a
// pod that is being deleted, or whose pass runs.
func (w *Workers) MarkAbsent(uid types.UID) {
	x := w.workers[uid]
	switch {
	case x == nil || x.running != nil || x.ending:
	case x.ended:
		// The next pass records the end again.
		x.ended, x.due = false, time.Time{}
	case x.ends:
	default:
		x.started = false
	}
}

// Wake requests a pass of a pod now, or as soon as its running pass has ended.
func (w *Workers) Wake(now time.Time, uid types.UID) {
	if x := w.workers[uid]; x != nil {
		x.due = earlier(x.due, now)
	}
}

// WakeAll wakes every pod, because the runtime is back.
func (w *Workers) WakeAll(now time.Time) {
	for uid := range w.workers {
		w.Wake(now, uid)
	}
}

// Done ends the pass of a pod with its result.
func (w *Workers) Done(now time.Time, uid types.UID, result Result) {
	x := w.workers[uid]
	if x == nil || x.running == nil {
		return
	}
	pass, stale := x.running, x.stale
	x.running, x.stale, x.cut = nil, false, false
	x.pulls, x.uncounted, x.resuming = 0, false, false
	switch {
	case x.forgotten:
		delete(w.workers, uid)
	case pass.Kind == Terminate && !result.Failed:
		w.ended(x)
	case pass.stops(x) && !result.Failed && !stale && !pass.continues(result):
		x.stopped = true
	case pass.Kind == End && result.Ended:
		x.ended = true
	case stale:
		x.due = earlier(x.due, now)
	case pass.stops(x) && result.Failed:
		// There is little time for another attempt.
		x.due = earlier(x.due, now.Add(busyPause))
	default:
		if pass.continues(result) && !pass.stops(x) {
			x.evict = pass.Eviction
		}
		x.due = earlier(x.due, w.settings.nextPass(now, x, result))
		if pass.Kind == Evict && !pass.continues(result) {
			// The manifest may have changed during the eviction.
			x.due = now
		}
	}
}

// ended drops a pod that is gone, or recreates it.
func (w *Workers) ended(x *worker) {
	delete(w.workers, x.ref.UID)
	if x.recreate != nil {
		w.add(x.recreate)
	}
}

// State is the state of a pod's worker.
type State struct {
	Ref model.PodRef
	// Kind is the kind of the running pass. It is empty if there is none.
	Kind Kind
	// Ending reports whether the pod is being deleted, or ends because its source deletes it.
	Ending bool
	// Due is the time of the next pass if no event comes before. It is zero while a pass runs and no other is due after
	// it.
	Due time.Time
	// WaitsFor is the pod with the same name that must be gone first. It is nil if there is none.
	WaitsFor *model.PodRef
}

// States returns the states of all pods by name.
func (w *Workers) States() []State {
	list := make([]State, 0, len(w.workers))
	for _, x := range w.workers {
		s := State{Ref: x.ref, Ending: x.leaves()}
		if x.running != nil {
			s.Kind = x.running.Kind
		}
		if x.due != never() {
			s.Due = x.due
		}
		if other := w.nameHolder(x); other != nil {
			s.WaitsFor = &other.ref
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b State) int { return a.Ref.Compare(b.Ref) })
	return list
}

// Has reports whether a pod has a worker.
func (w *Workers) Has(uid types.UID) bool {
	x := w.workers[uid]
	return x != nil && !x.forgotten
}

// leaves reports whether a pod ends for good or is deleted.
func (x *worker) leaves() bool { return x.ends || x.ending }

// Next begins the passes that are due and returns them. cut are the pods whose passes must be cut short, each returned
// once. wake is the time of the next call if nothing else happens, or zero for never.
func (w *Workers) Next(now time.Time) (begin []Pass, cut []types.UID, wake time.Time) {
	free := w.freeSyncs()
	for _, x := range w.byDue() {
		switch {
		case x.running != nil && x.stale && !x.cut:
			x.cut = true
			cut = append(cut, x.ref.UID)
		case x.running != nil, x.ended && !x.ending, !x.leaves() && (w.isHeld(x) || w.nameHolder(x) != nil):
		case x.due.After(now):
			if wake.IsZero() || x.due.Before(wake) {
				wake = x.due
			}
		case x.leaves(), x.stop != nil, x.evict != nil:
			begin = append(begin, x.begin())
		case free != 0:
			free--
			begin = append(begin, x.begin())
		}
	}
	return begin, cut, wake
}

// freeSyncs returns how many Sync passes may begin. A negative result means no limit.
func (w *Workers) freeSyncs() int {
	if w.settings.Parallel == 0 {
		return -1
	}
	free := w.settings.Parallel
	for _, x := range w.workers {
		if x.running != nil && x.running.Kind == Sync && !x.uncounted {
			free--
		}
	}
	return max(free, 0)
}

// begin starts the pass for the wanted state.
func (x *worker) begin() Pass {
	p := Pass{Kind: Sync, Ref: x.ref, Pod: x.wanted, Repeated: x.started}
	switch {
	case x.ending:
		p = Pass{Kind: Terminate, Ref: x.ref, Grace: x.grace}
	case x.ends:
		p.Kind, p.Grace = End, x.grace
	case x.fail != nil:
		p.Kind, p.Eviction = Evict, x.fail
	case x.stop != nil:
		p.Kind, p.Grace = Stop, x.stop
	case x.evict != nil:
		p.Kind, p.Eviction, x.evict = Evict, x.evict, nil
	}
	x.running, x.started, x.startless, x.due = &p, true, false, never()
	return p
}

// edit makes the next pass due now, because the manifest may have changed, and makes the running pass stale. A running
// eviction goes on, because an edit does not cancel it, unless it belongs to a shutdown that has ended.
func (x *worker) edit(now time.Time) {
	if x.running != nil && x.running.Kind == Evict && !x.running.Eviction.Shutdown {
		x.due = earlier(x.due, now)
		return
	}
	x.replace(now)
}

// replace makes the running pass stale and the next pass due now.
func (x *worker) replace(now time.Time) {
	x.stale = x.running != nil
	x.due = earlier(x.due, now)
}
