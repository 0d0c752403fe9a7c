package agent

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/owner"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
)

// keeper gives the workers the pods that are kept: those that sources want, and those that were applied by hand. Which these are is
// decided by package owner. It has no clock and no goroutine.
type keeper struct {
	workers *podworkers.Workers
	// ledger has what sources want, and decided is when it has decided last.
	ledger  *owner.Ledger
	decided time.Time
	// stored are the pods that have a checkpoint. One that cannot be read now, which are those of unreadable, counts as
	// it was read last.
	stored     map[types.UID]Stored
	unreadable map[types.UID]bool

	// kept are the pods that are wanted, leaving those that were given to the workers for deletion,
	// problems what is wrong with what sources want.
	kept     map[types.UID]*podspec.Desired
	leaving  map[types.UID]*podspec.Desired
	problems []sources.Problem
	// read reads what is remembered of a pod; nil for nothing.
	read func(types.UID) (*Stored, error)
	// resolved is called when these may be others than before.
	resolved func()
}

func newKeeper(workers *podworkers.Workers, from []sources.Source, byHand bool, read func(types.UID) (*Stored, error), resolved func()) *keeper {
	k := &keeper{
		workers: workers, ledger: owner.New(owner.Pods, byHand), stored: map[types.UID]Stored{}, unreadable: map[types.UID]bool{},
		kept: map[types.UID]*podspec.Desired{}, leaving: map[types.UID]*podspec.Desired{}, read: read, resolved: resolved,
	}
	for _, s := range from {
		k.ledger.Add(s)
	}
	return k
}

// sourceSays takes what a source wants.
func (k *keeper) sourceSays(now time.Time, update sources.Update) {
	k.ledger.Updates[update.Source] = update
	k.resolve(now)
}

// recordsSay takes what is remembered of all pods, and why that of some cannot be read.
func (k *keeper) recordsSay(now time.Time, stored map[types.UID]Stored, unreadable map[types.UID]error) {
	clear(k.unreadable)
	for uid := range unreadable {
		k.unreadable[uid] = true
		if s, known := k.stored[uid]; known {
			stored[uid] = s
		}
	}
	k.stored = stored
	for uid := range k.kept {
		k.missing(uid)
	}
	k.resolve(now)
}

// recordSays takes what is remembered of one pod; nil for nothing.
func (k *keeper) recordSays(now time.Time, uid types.UID, stored *Stored) {
	delete(k.unreadable, uid)
	if k.remember(uid, stored); stored == nil {
		k.missing(uid)
	}
	k.resolve(now)
}

func (k *keeper) remember(uid types.UID, stored *Stored) {
	if stored == nil {
		delete(k.stored, uid)
	} else {
		k.stored[uid] = *stored
	}
}

// recordUnreadable takes note that what is remembered of a pod cannot be read now.
func (k *keeper) recordUnreadable(uid types.UID) { k.unreadable[uid] = true }

// missing lets a pod of which nothing is remembered wait for one of its name that is there: whatever was made of it is
// gone.
func (k *keeper) missing(uid types.UID) {
	if _, known := k.stored[uid]; !known && !k.unreadable[uid] {
		k.workers.MadeNothing(uid)
	}
}

// settle counts what sources do not want once it is time, and returns when that is; zero if it has been, or is not known.
func (k *keeper) settle(now time.Time) time.Time {
	if due := k.ledger.Settles(k.decided); !due.IsZero() && !now.Before(due) {
		k.resolve(now)
	}
	return k.ledger.Settles(now)
}

// resolve tells the workers what has changed.
func (k *keeper) resolve(now time.Time) {
	decision, wanted := k.decide(now)
	for uid, d := range k.kept {
		if wanted[uid] == nil && k.mayBeRemembered(d) && k.ledger.Fate(now, &owner.Record{Thing: owner.Pod(d)}) == owner.Stays {
			wanted[uid] = asStored(d)
		}
	}
	gone := maps.Clone(k.kept)
	for uid, s := range k.stored {
		gone[uid] = s.Desired
	}
	k.kept, k.decided = wanted, now
	k.tell(now, decision)
	for _, uid := range slices.Sorted(maps.Keys(gone)) {
		if wanted[uid] == nil {
			k.release(now, gone[uid], decision)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(wanted)) {
		if k.stored[uid].Deleting {
			// Somebody else has begun to delete it: it is made anew after its end.
			k.workers.Remove(now, model.RefOf(wanted[uid].Pod), nil)
		}
		k.workers.Update(now, wanted[uid])
	}
	k.resolved()
}

// decide decides, and returns the pods that are wanted as well. If a pod would be deleted because a pod that was applied by hand has
// its name, the checkpoint of that one is read first: a user may have deleted it just now. While that cannot be read, the pod stays.
func (k *keeper) decide(now time.Time) (decision *owner.Decision, wanted map[types.UID]*podspec.Desired) {
	decision, wanted = k.ledger.Decide(now, k.records()), map[types.UID]*podspec.Desired{}
	anew := false
	for _, h := range decision.Held {
		uid := h.Pod.Pod.UID
		if s, there := k.stored[uid]; !there || s.Deleting || k.workers.Ending(uid) {
			continue
		}
		if s, err := k.read(h.Holder.Pod.Pod.UID); err != nil {
			wanted[uid] = k.stored[uid].Desired
		} else {
			k.remember(h.Holder.Pod.Pod.UID, s)
			anew = true
		}
	}
	if anew {
		decision = k.ledger.Decide(now, k.records())
	}
	for _, t := range decision.Wanted {
		wanted[t.Pod.Pod.UID] = t.Pod
	}
	for i := range decision.Stays {
		d := decision.Stays[i].Pod
		wanted[d.Pod.UID] = d
	}
	return decision, wanted
}

// records are the pods that have a checkpoint.
func (k *keeper) records() []owner.Record {
	all := make([]owner.Record, 0, len(k.stored))
	for _, s := range k.stored {
		all = append(all, owner.Record{Thing: owner.Pod(s.Desired), Deleting: s.Deleting})
	}
	return all
}

// tell takes the problems of sources, and those between them.
func (k *keeper) tell(now time.Time, decision *owner.Decision) {
	var problems []sources.Problem
	for _, name := range k.ledger.Order {
		problems = append(append(problems, k.ledger.Updates[name].Problems...), sources.Few(name, decision.Problems[name])...)
	}
	sources.Stamp(problems, now, k.problems)
	k.problems = problems
}

// takeoversOf are those of a source: of its pods, and of its workloads and objects.
func (k *keeper) takeoversOf(source string) (all []sources.Problem) {
	for _, uid := range slices.Sorted(maps.Keys(k.kept)) {
		if p, is := k.takeover(uid); is && k.kept[uid].Keeper == source {
			all = append(all, p)
		}
	}
	return sources.Few(source, append(all, k.ledger.Updates[source].Takeovers...))
}

// takeover is that of a pod that was applied by hand and that a source has brought since.
func (k *keeper) takeover(uid types.UID) (p sources.Problem, is bool) {
	p, is = k.ledger.Takeovers[owner.PodID(uid)]
	return p, is
}

func byName(a, b *podspec.Desired) int { return model.RefOf(a.Pod).Compare(model.RefOf(b.Pod)) }

// holderByHand is the pod that was applied by hand and keeps a pod of a source from its name; nil if there is none.
func (k *keeper) holderByHand(d *podspec.Desired) *model.PodRef {
	r := k.ledger.Holder(k.records(), d)
	if r == nil {
		return nil
	}
	return new(model.RefOf(r.Pod.Pod))
}

// isOwn reports whether a source is one of the agent's.
func (k *keeper) isOwn(source string) bool { return k.ledger.Owns(source) }

// mayBeRemembered reports whether a pod of a source may have a checkpoint of which nothing is known: its first pass has
// not ended, or the checkpoint cannot be read.
func (k *keeper) mayBeRemembered(d *podspec.Desired) bool {
	uid := d.Pod.UID
	_, known := k.stored[uid]
	return !known && k.isOwn(d.Keeper) && (k.unreadable[uid] || k.workers.Making(uid))
}

// asStored is a manifest that no source may want any more: it counts only as long as the checkpoint
// has it.
func asStored(d *podspec.Desired) *podspec.Desired {
	if d.Stored {
		return d
	}
	kept := *d
	kept.Stored = true
	return &kept
}

// release lets go of a pod that is not wanted. It is deleted if the decision says so, or if it was given to the workers and has no
// checkpoint yet; another is not the agent's to delete.
func (k *keeper) release(now time.Time, d *podspec.Desired, decision *owner.Decision) {
	uid := d.Pod.UID
	_, known := k.stored[uid]
	ends := slices.ContainsFunc(decision.Ends, func(r owner.Record) bool { return r.Pod.Pod.UID == uid })
	// One that was kept as it was stored has lost its checkpoint, or that cannot be read now.
	if ends || !known && k.isOwn(d.Keeper) && (!d.Stored || k.workers.Making(uid)) {
		k.workers.Remove(now, model.RefOf(d.Pod), decision.GraceOf(uid))
		k.leaving[uid] = d
		return
	}
	k.workers.Forget(uid)
	delete(k.leaving, uid)
}

// warnings are that a file has taken over a pod, and its other manifests, which do not count.
func (k *keeper) warnings(uid types.UID) (warnings []executor.PodWarning) {
	if p, is := k.takeover(uid); is {
		warnings = append(warnings, executor.PodWarning{Reason: "TakenOver", Text: p.File + " " + p.Text, Since: p.Since})
	}
	for _, p := range k.problems {
		if p.Pod == uid {
			warnings = append(warnings, executor.PodWarning{Reason: "DuplicateManifest", Text: p.Text, Since: p.Since})
		}
	}
	return warnings
}

// applied takes note of a pod that a pass has brought about.
func (k *keeper) applied(d *podspec.Desired) {
	s, known := k.stored[d.Pod.UID]
	if known && !s.Deleting && s.Desired.Keeper == d.Keeper && s.Desired.SameManifest(d) {
		return
	}
	k.stored[d.Pod.UID] = Stored{Desired: asStored(d)}
}

// keeperOf is the source that brought a pod; empty for one that was applied by hand.
func (k *keeper) keeperOf(uid types.UID) string {
	if s, known := k.stored[uid]; known {
		return s.Desired.Keeper
	}
	return ""
}

// ended takes note of a pod that is gone.
func (k *keeper) ended(now time.Time, uid types.UID) {
	delete(k.stored, uid)
	delete(k.unreadable, uid)
	delete(k.kept, uid)
	delete(k.leaving, uid)
	k.ledger.Forget(owner.PodID(uid))
	k.resolve(now)
}

// shown are the pods that are kept, as they were applied last, or else as they are wanted, and those
// that are being deleted.
func (k *keeper) shown() []*podspec.Desired {
	all := maps.Clone(k.kept)
	maps.Copy(all, k.leaving)
	shown := make([]*podspec.Desired, 0, len(all))
	for uid, d := range all {
		if k.kept[uid] == nil && !k.workers.Ending(uid) {
			continue
		}
		shown = append(shown, k.asApplied(d))
	}
	slices.SortFunc(shown, byName)
	return shown
}

// asApplied is a pod as it was applied last, or else as it is wanted.
func (k *keeper) asApplied(d *podspec.Desired) *podspec.Desired {
	if s, known := k.stored[d.Pod.UID]; known {
		return s.Desired
	}
	return d
}
