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

// keeper passes the kept pods to the workers: the pods of sources and those that were applied by hand. Package owner
// decides which pods are kept. The keeper has no clock and no goroutine.
type keeper struct {
	workers *podworkers.Workers
	// ledger holds the pods that sources want. decided is the time of its last decision.
	ledger  *owner.Ledger
	decided time.Time
	// stored holds the pods that have a checkpoint. For a checkpoint that cannot be read now (unreadable), it holds the
	// last version that was read.
	stored     map[types.UID]Stored
	unreadable map[types.UID]bool

	// kept holds the wanted pods. leaving holds those that the workers delete. problems are the problems of the
	// sources.
	kept     map[types.UID]*podspec.Desired
	leaving  map[types.UID]*podspec.Desired
	problems []sources.Problem
	// read reads the checkpoint of a pod. It returns nil if there is none.
	read func(types.UID) (*Stored, error)
	// resolved is called when kept, leaving or problems may have changed.
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

// sourceSays handles an update of a source.
func (k *keeper) sourceSays(now time.Time, update sources.Update) {
	k.ledger.Updates[update.Source] = update
	k.resolve(now)
}

// recordsSay handles the checkpoints of all pods, and the errors of those that cannot be read.
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

// recordSays handles the checkpoint of one pod. It is nil if there is none.
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

// recordUnreadable records that the checkpoint of a pod cannot be read now.
func (k *keeper) recordUnreadable(uid types.UID) { k.unreadable[uid] = true }

// missing handles a pod without a checkpoint: nothing of it exists. It must wait if another pod has its name.
func (k *keeper) missing(uid types.UID) {
	if _, known := k.stored[uid]; !known && !k.unreadable[uid] {
		k.workers.MadeNothing(uid)
	}
}

// settle decides again when the ledger's waiting time for missing pods is over. It returns when that is, or zero if it
// has passed or is unknown.
func (k *keeper) settle(now time.Time) time.Time {
	if due := k.ledger.Settles(k.decided); !due.IsZero() && !now.Before(due) {
		k.resolve(now)
	}
	return k.ledger.Settles(now)
}

// resolve notifies the workers of changes.
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
			// Another process has begun to delete the pod. It is recreated after its end.
			k.workers.Remove(now, model.RefOf(wanted[uid].Pod), nil)
		}
		k.workers.Update(now, wanted[uid])
	}
	k.resolved()
}

// decide returns the decision and the wanted pods. A pod may have to be deleted because a pod applied by hand has its
// name. decide first reads the checkpoint of that pod, because a user may have just deleted it. While the checkpoint
// cannot be read, the pod stays.
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

// records returns the pods that have a checkpoint.
func (k *keeper) records() []owner.Record {
	all := make([]owner.Record, 0, len(k.stored))
	for _, s := range k.stored {
		all = append(all, owner.Record{Thing: owner.Pod(s.Desired), Deleting: s.Deleting})
	}
	return all
}

// tell collects the problems of each source and the conflicts between sources.
func (k *keeper) tell(now time.Time, decision *owner.Decision) {
	var problems []sources.Problem
	for _, name := range k.ledger.Order {
		problems = append(append(problems, k.ledger.Updates[name].Problems...), sources.Few(name, decision.Problems[name])...)
	}
	sources.Stamp(problems, now, k.problems)
	k.problems = problems
}

// takeoversOf returns the takeovers of a source: those of its pods, workloads and objects.
func (k *keeper) takeoversOf(source string) (all []sources.Problem) {
	for _, uid := range slices.Sorted(maps.Keys(k.kept)) {
		if p, is := k.takeover(uid); is && k.kept[uid].Keeper == source {
			all = append(all, p)
		}
	}
	return sources.Few(source, append(all, k.ledger.Updates[source].Takeovers...))
}

// takeover returns the takeover of a pod that was applied by hand and that a source has since provided.
func (k *keeper) takeover(uid types.UID) (p sources.Problem, is bool) {
	p, is = k.ledger.Takeovers[owner.PodID(uid)]
	return p, is
}

func byName(a, b *podspec.Desired) int { return model.RefOf(a.Pod).Compare(model.RefOf(b.Pod)) }

// holderByHand returns the pod that was applied by hand and has the name of a source's pod. It returns nil if there is
// none.
func (k *keeper) holderByHand(d *podspec.Desired) *model.PodRef {
	r := k.ledger.Holder(k.records(), d)
	if r == nil {
		return nil
	}
	return new(model.RefOf(r.Pod.Pod))
}

// isOwn reports whether a source is one of the agent's.
func (k *keeper) isOwn(source string) bool { return k.ledger.Owns(source) }

// mayBeRemembered reports whether a pod of a source may have a checkpoint that the agent has not seen. This is so if
// its first pass has not ended, or if the checkpoint cannot be read.
func (k *keeper) mayBeRemembered(d *podspec.Desired) bool {
	uid := d.Pod.UID
	_, known := k.stored[uid]
	return !known && k.isOwn(d.Keeper) && (k.unreadable[uid] || k.workers.Making(uid))
}

// asStored returns a manifest that a source may no longer want. It is valid only as long as the checkpoint contains it.
func asStored(d *podspec.Desired) *podspec.Desired {
	if d.Stored {
		return d
	}
	kept := *d
	kept.Stored = true
	return &kept
}

// release releases a pod that is not wanted. The pod is deleted if the decision requires it, or if the workers got it
// and it has no checkpoint yet. Other pods are not the agent's to delete.
func (k *keeper) release(now time.Time, d *podspec.Desired, decision *owner.Decision) {
	uid := d.Pod.UID
	_, known := k.stored[uid]
	ends := slices.ContainsFunc(decision.Ends, func(r owner.Record) bool { return r.Pod.Pod.UID == uid })
	// A pod kept in its stored version has lost its checkpoint, or the checkpoint cannot be read now.
	if ends || !known && k.isOwn(d.Keeper) && (!d.Stored || k.workers.Making(uid)) {
		k.workers.Remove(now, model.RefOf(d.Pod), decision.GraceOf(uid))
		k.leaving[uid] = d
		return
	}
	k.workers.Forget(uid)
	delete(k.leaving, uid)
}

// warnings returns the warnings of a pod: a file has taken it over, or other manifests of the same pod have no effect.
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

// applied records a pod that a pass has applied.
func (k *keeper) applied(d *podspec.Desired) {
	s, known := k.stored[d.Pod.UID]
	if known && !s.Deleting && s.Desired.Keeper == d.Keeper && s.Desired.SameManifest(d) {
		return
	}
	k.stored[d.Pod.UID] = Stored{Desired: asStored(d)}
}

// keeperOf returns the source of a pod. It is empty for a pod that was applied by hand.
func (k *keeper) keeperOf(uid types.UID) string {
	if s, known := k.stored[uid]; known {
		return s.Desired.Keeper
	}
	return ""
}

// ended forgets a pod that is gone.
func (k *keeper) ended(now time.Time, uid types.UID) {
	delete(k.stored, uid)
	delete(k.unreadable, uid)
	delete(k.kept, uid)
	delete(k.leaving, uid)
	k.ledger.Forget(owner.PodID(uid))
	k.resolve(now)
}

// shown returns the kept pods and those that are being deleted. Each is in the version that was applied last, or else
// in the wanted version.
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

// asApplied returns a pod in the version that was applied last, or else in the wanted version.
func (k *keeper) asApplied(d *podspec.Desired) *podspec.Desired {
	if s, known := k.stored[d.Pod.UID]; known {
		return s.Desired
	}
	return d
}
