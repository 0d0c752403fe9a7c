package agent

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent/owner"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
)

// reconciler passes the kept pods to the workers: the pods of sources and those that were applied by hand. Package
// owner decides which pods are kept. The reconciler has no clock and no goroutine.
type reconciler struct {
	workers *podworkers.Workers
	// ledger holds the pods that sources want. decided is the time of its last decision.
	ledger  *owner.Ledger
	decided time.Time
	// stored holds the pods that have a checkpoint. For a checkpoint that cannot be read now (unreadable), it holds the
	// last version that was read.
	stored     map[types.UID]Stored
	unreadable map[types.UID]bool

	// kept holds the wanted pods. ending holds those that end because their source deletes them. leaving holds these,
	// and those that the workers delete. problems are the problems of the sources.
	kept     map[types.UID]*podspec.Desired
	ending   map[types.UID]*podspec.Desired
	leaving  map[types.UID]*podspec.Desired
	problems []sources.Problem
	// read reads the checkpoint of a pod. It returns nil if there is none.
	read func(types.UID) (*Stored, error)
	// notifyResolved is called when kept, leaving or problems may have changed.
	notifyResolved func()
}

func newReconciler(
	workers *podworkers.Workers, ledger *owner.Ledger, read func(types.UID) (*Stored, error), resolved func(),
) *reconciler {
	return &reconciler{
		workers:        workers,
		ledger:         ledger,
		stored:         map[types.UID]Stored{},
		unreadable:     map[types.UID]bool{},
		kept:           map[types.UID]*podspec.Desired{},
		leaving:        map[types.UID]*podspec.Desired{},
		read:           read,
		notifyResolved: resolved,
	}
}

// handleSourceUpdate handles an update of a source.
func (r *reconciler) handleSourceUpdate(now time.Time, update sources.Update) {
	r.ledger.Updates[update.Source] = update
	r.resolve(now)
}

// handleRecords handles the checkpoints of all pods, and the errors of those that cannot be read.
func (r *reconciler) handleRecords(now time.Time, stored map[types.UID]Stored, unreadable map[types.UID]error) {
	clear(r.unreadable)
	for uid := range unreadable {
		r.unreadable[uid] = true
		if s, known := r.stored[uid]; known {
			stored[uid] = s
		}
	}
	r.stored = stored
	for uid := range r.kept {
		r.handleMissing(uid)
	}
	for uid := range r.ending {
		r.handleMissing(uid)
	}
	r.resolve(now)
}

// handleRecord handles the checkpoint of one pod. It is nil if there is none.
func (r *reconciler) handleRecord(now time.Time, uid types.UID, stored *Stored) {
	delete(r.unreadable, uid)
	if r.setStored(uid, stored); stored == nil {
		r.handleMissing(uid)
	}
	r.resolve(now)
}

func (r *reconciler) setStored(uid types.UID, stored *Stored) {
	if stored == nil {
		delete(r.stored, uid)
	} else {
		r.stored[uid] = *stored
	}
}

// handleMissing handles a pod without a checkpoint, which does not exist yet. It must wait if another pod has its name.
func (r *reconciler) handleMissing(uid types.UID) {
	if _, known := r.stored[uid]; !known && !r.unreadable[uid] {
		r.workers.MarkAbsent(uid)
	}
}

// resolveIfDue decides again when the ledger's waiting time for missing pods is over. It returns when that is, or zero
// if it has passed or is unknown.
func (r *reconciler) resolveIfDue(now time.Time) time.Time {
	if due := r.ledger.NextDrop(r.decided); !due.IsZero() && !now.Before(due) {
		r.resolve(now)
	}
	return r.ledger.NextDrop(now)
}

// resolve notifies the workers of changes.
func (r *reconciler) resolve(now time.Time) {
	decision, wanted := r.decide(now)
	for uid, d := range r.kept {
		if wanted[uid] != nil || !r.mayHaveCheckpoint(d) {
			continue
		}
		if r.ledger.ActionFor(now, &owner.Record{Resource: owner.Pod(d)}) == owner.Keep {
			wanted[uid] = asStored(d)
		}
	}
	gone := maps.Clone(r.kept)
	maps.Copy(gone, r.ending)
	for uid, s := range r.stored {
		gone[uid] = s.Desired
	}
	r.kept, r.decided = wanted, now
	r.collectProblems(now, decision)
	r.endAll(now, decision)
	for _, uid := range slices.Sorted(maps.Keys(gone)) {
		if wanted[uid] == nil && r.ending[uid] == nil {
			r.release(now, gone[uid], decision)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(wanted)) {
		if r.stored[uid].Deleting {
			// Another process has begun to delete the pod. It is recreated after its end.
			r.workers.Remove(now, wanted[uid], nil)
		}
		r.workers.Update(now, wanted[uid])
	}
	r.notifyResolved()
}

// endAll ends the pods that their source deletes.
func (r *reconciler) endAll(now time.Time, decision *owner.Decision) {
	r.ending = map[types.UID]*podspec.Desired{}
	byUID := func(a, b owner.Ending) int { return cmp.Compare(a.Pod.Pod.UID, b.Pod.Pod.UID) }
	for _, e := range slices.SortedStableFunc(slices.Values(decision.Ending), byUID) {
		uid := e.Pod.Pod.UID
		r.ending[uid], r.leaving[uid] = e.Pod, e.Pod
		if r.stored[uid].Deleting {
			// The deletion that has begun is finished first.
			r.workers.Remove(now, e.Pod, &e.Grace)
		} else {
			r.workers.End(now, e.Pod, e.Grace)
		}
	}
}

// decide returns the decision and the wanted pods. A pod may have to be deleted because a pod applied by hand has its
// name. decide first reads the checkpoint of that pod, because a user may have just deleted it. While the checkpoint
// cannot be read, the pod stays.
func (r *reconciler) decide(now time.Time) (decision *owner.Decision, wanted map[types.UID]*podspec.Desired) {
	decision, wanted = r.ledger.Decide(now, r.records()), map[types.UID]*podspec.Desired{}
	reread := false
	for _, h := range decision.Held {
		uid := h.Pod.Pod.UID
		if s, there := r.stored[uid]; !there || s.Deleting || r.workers.Ending(uid) {
			continue
		}
		if s, err := r.read(h.Holder.Pod.Pod.UID); err != nil {
			wanted[uid] = r.stored[uid].Desired
		} else {
			r.setStored(h.Holder.Pod.Pod.UID, s)
			reread = true
		}
	}
	if reread {
		decision = r.ledger.Decide(now, r.records())
	}
	for _, t := range decision.Wanted {
		wanted[t.Pod.Pod.UID] = t.Pod
	}
	for i := range decision.Kept {
		d := decision.Kept[i].Pod
		wanted[d.Pod.UID] = d
	}
	return decision, wanted
}

// records returns the pods that have a checkpoint.
func (r *reconciler) records() []owner.Record {
	all := make([]owner.Record, 0, len(r.stored))
	for _, s := range r.stored {
		all = append(all, s.record())
	}
	return all
}

// collectProblems collects the problems of each source and the conflicts between sources.
func (r *reconciler) collectProblems(now time.Time, decision *owner.Decision) {
	var problems []sources.Problem
	for _, name := range r.ledger.Order {
		problems = append(problems, r.ledger.Updates[name].Problems...)
		problems = append(problems, sources.Few(name, decision.Problems[name])...)
	}
	sources.Stamp(problems, now, r.problems)
	r.problems = problems
}

// takeoversOf returns the takeovers of a source: those of its pods, workloads and objects.
func (r *reconciler) takeoversOf(source string) (all []sources.Problem) {
	for _, uid := range slices.Sorted(maps.Keys(r.kept)) {
		if p, is := r.ledger.Takeovers[owner.PodID(uid)]; is && r.kept[uid].Owner == source {
			all = append(all, p)
		}
	}
	return sources.Few(source, append(all, r.ledger.Updates[source].Takeovers...))
}

// nameHolder returns the pod that was applied by hand and has the name of a source's pod. It returns nil if there is
// none.
func (r *reconciler) nameHolder(d *podspec.Desired) *model.PodRef {
	holder := r.ledger.Holder(r.records(), d)
	if holder == nil {
		return nil
	}
	return new(model.RefOf(holder.Pod.Pod))
}

// mayHaveCheckpoint reports whether a pod of a source may have a checkpoint that the agent has not seen. This is so if
// its first pass has not ended, or if the checkpoint cannot be read.
func (r *reconciler) mayHaveCheckpoint(d *podspec.Desired) bool {
	uid := d.Pod.UID
	_, known := r.stored[uid]
	return !known && r.ledger.Owns(d.Owner) && (r.unreadable[uid] || r.workers.Syncing(uid))
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

// release handles a pod that is not wanted. It deletes the pod if the decision requires it, or if the workers have the
// pod and it has no checkpoint yet. The agent must not delete other pods, and only forgets them.
func (r *reconciler) release(now time.Time, d *podspec.Desired, decision *owner.Decision) {
	uid := d.Pod.UID
	_, known := r.stored[uid]
	ends := slices.ContainsFunc(decision.Deleted, func(record owner.Record) bool { return record.Pod.Pod.UID == uid })
	// A pod kept in its stored version has lost its checkpoint, or the checkpoint cannot be read now.
	if ends || !known && r.ledger.Owns(d.Owner) && (!d.Stored || r.workers.Syncing(uid)) {
		r.workers.Remove(now, d, r.ledger.Grace(uid))
		r.leaving[uid] = d
		return
	}
	r.workers.Forget(uid)
	delete(r.leaving, uid)
}

// warnings returns the warnings of a pod: a file has taken it over, or other manifests of the same pod have no effect.
func (r *reconciler) warnings(uid types.UID) (warnings []executor.PodWarning) {
	if p, is := r.ledger.Takeovers[owner.PodID(uid)]; is {
		text := p.File + " " + p.Text
		warnings = append(warnings, executor.PodWarning{Reason: "TakenOver", Text: text, Since: p.Since})
	}
	for _, p := range r.problems {
		if p.Pod == uid {
			warnings = append(warnings, executor.PodWarning{Reason: "DuplicateManifest", Text: p.Text, Since: p.Since})
		}
	}
	return warnings
}

// recordApplied records a pod that a pass has applied. It reports whether the pod requests fewer resources than before
// (kubelet: HandlePodReconcile).
func (r *reconciler) recordApplied(d *podspec.Desired) (shrinks bool) {
	s, known := r.stored[d.Pod.UID]
	if known && !s.Deleting && s.Desired.Owner == d.Owner && d.SameGeneration(s.Desired) && s.Desired.SameManifest(d) {
		return false
	}
	r.stored[d.Pod.UID] = Stored{Desired: asStored(d)}
	return known && admission.Shrinks(s.Desired.Pod, d.Pod)
}

// ownerOf returns the source of a pod. It is empty for a pod that was applied by hand.
func (r *reconciler) ownerOf(uid types.UID) string {
	if s, known := r.stored[uid]; known {
		return s.Desired.Owner
	}
	return ""
}

// forget forgets a pod that is gone.
func (r *reconciler) forget(now time.Time, uid types.UID) {
	delete(r.stored, uid)
	delete(r.unreadable, uid)
	delete(r.kept, uid)
	delete(r.ending, uid)
	delete(r.leaving, uid)
	r.ledger.Forget(owner.PodID(uid))
	r.resolve(now)
}

// shownPods returns the kept pods and those that are being deleted, by name. Of several pods with one name, those that
// stay are first. Each is in the version that was applied last, or else in the wanted version.
func (r *reconciler) shownPods() []*podspec.Desired {
	all := maps.Clone(r.kept)
	maps.Copy(all, r.leaving)
	shown := make([]*podspec.Desired, 0, len(all))
	for uid, d := range all {
		if r.kept[uid] == nil && !r.workers.Ending(uid) {
			continue
		}
		shown = append(shown, r.asApplied(d))
	}
	slices.SortFunc(shown, func(a, b *podspec.Desired) int {
		one, two := model.RefOf(a.Pod), model.RefOf(b.Pod)
		if leaves := r.workers.Ending(one.UID); one.SameName(two) && leaves != r.workers.Ending(two.UID) {
			if leaves {
				return 1
			}
			return -1
		}
		return one.Compare(two)
	})
	return shown
}

// asApplied returns a pod in the version that was applied last, or else in the wanted version.
func (r *reconciler) asApplied(d *podspec.Desired) *podspec.Desired {
	if s, known := r.stored[d.Pod.UID]; known {
		return s.Desired
	}
	return d
}
