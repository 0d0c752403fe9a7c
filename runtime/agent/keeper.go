package agent

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
)

// keeper decides which pods are kept: those that sources want, and those that were applied by hand.
// It has no clock and no goroutine.
type keeper struct {
	workers *podworkers.Workers
	// order are the names of the sources; the first that wants a pod brings it.
	order   []string
	updates map[string]sources.Update
	// stored are the pods that have a checkpoint. One that cannot be read now, which are those of unreadable, counts as
	// it was read last.
	stored     map[types.UID]Stored
	unreadable map[types.UID]bool
	// byHand is set where pods that were applied by hand are kept too.
	byHand bool

	// kept are the pods that are wanted, leaving those that were given to the workers for deletion,
	// problems what is wrong with what sources want.
	kept     map[types.UID]*podspec.Desired
	leaving  map[types.UID]*podspec.Desired
	merged   sources.Merged
	problems []sources.Problem
	// settles is when it counts that sources do not want a pod which they brought in the life of another agent: Lingers
	// after all of them were read for the first time. settled is set from then on. What a source has wanted in the life of
	// this agent, which are the pods of seen, lingers there.
	settles time.Time
	settled bool
	seen    map[types.UID]bool
	// takeovers are the pods that were applied by hand and that sources have brought in the life of this agent.
	takeovers map[types.UID]sources.Problem
	// read reads what is remembered of a pod; nil for nothing.
	read func(types.UID) (*Stored, error)
	// resolved is called when these may be others than before.
	resolved func()
}

func newKeeper(workers *podworkers.Workers, order []string, byHand bool) *keeper {
	k := &keeper{
		workers: workers, order: order, byHand: byHand,
		updates: map[string]sources.Update{}, stored: map[types.UID]Stored{}, unreadable: map[types.UID]bool{},
		kept: map[types.UID]*podspec.Desired{}, leaving: map[types.UID]*podspec.Desired{}, seen: map[types.UID]bool{}, takeovers: map[types.UID]sources.Problem{}, resolved: func() {},
	}
	k.read = func(uid types.UID) (*Stored, error) {
		s, known := k.stored[uid]
		if !known {
			return nil, nil
		}
		return &s, nil
	}
	return k
}

// sourceSays takes what a source wants.
func (k *keeper) sourceSays(now time.Time, update sources.Update) {
	k.updates[update.Source] = update
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
	if stored == nil {
		delete(k.stored, uid)
		k.missing(uid)
	} else {
		k.stored[uid] = *stored
	}
	k.resolve(now)
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
	if !k.settles.IsZero() && !k.settled && !now.Before(k.settles) {
		k.settled = true
		k.resolve(now)
	}
	if k.settled {
		return time.Time{}
	}
	return k.settles
}

// resolve tells the workers what has changed.
func (k *keeper) resolve(now time.Time) {
	wanted := k.wantedBySources(now)
	if k.merged.Complete && k.settles.IsZero() {
		k.settles = now.Add(sources.Lingers)
	}
	for uid, s := range k.stored {
		if wanted[uid] == nil && k.stays(&s) {
			wanted[uid] = s.Desired
		}
	}
	for uid, d := range k.kept {
		if wanted[uid] == nil && k.mayBeRemembered(d) && k.stays(&Stored{Desired: d}) {
			wanted[uid] = asStored(d)
		}
	}
	gone := maps.Clone(k.kept)
	for uid, s := range k.stored {
		gone[uid] = s.Desired
	}
	k.kept = wanted
	for _, uid := range slices.Sorted(maps.Keys(gone)) {
		if wanted[uid] == nil {
			k.release(now, uid, gone[uid])
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

// wantedBySources are the pods that sources want, without those whose name a pod has that was
// applied by hand: nobody asked to end that one.
func (k *keeper) wantedBySources(now time.Time) map[types.UID]*podspec.Desired {
	updates := make([]sources.Update, 0, len(k.order))
	for _, name := range k.order {
		u := k.updates[name]
		u.Source = name
		updates = append(updates, u)
	}
	k.merged = sources.Merge(now, k.merged, updates, k.storedByName)
	problems, taken := slices.Clone(k.merged.Problems), map[string][]sources.Problem{}
	wanted := map[types.UID]*podspec.Desired{}
	for _, d := range slices.SortedFunc(maps.Values(k.merged.Pods), byName) {
		if other, sure := k.holderNow(d); other != nil {
			if !sure {
				wanted[d.Pod.UID] = k.stored[d.Pod.UID].Desired
			}
			taken[d.Keeper] = append(taken[d.Keeper], sources.Problem{File: d.Source, Pod: other.UID, Text: fmt.Sprintf(
				"pod %s is not made: the name has a pod that was applied by hand, with uid %s; `podctl delete %s` makes room",
				model.RefOf(d.Pod), other.UID, other.UID)})
			continue
		}
		wanted[d.Pod.UID] = d
		k.seen[d.Pod.UID] = true
		k.takeOver(now, d)
	}
	for _, name := range k.order {
		problems = append(problems, sources.Few(name, taken[name])...)
	}
	sources.Stamp(problems, now, k.problems)
	k.problems = problems
	return wanted
}

// takeOver notes that a file has brought a pod that was applied by hand. That of a workload is the workload's all the same.
func (k *keeper) takeOver(now time.Time, d *podspec.Desired) {
	s, there := k.stored[d.Pod.UID]
	if _, noted := k.takeovers[d.Pod.UID]; noted || !there || s.Deleting || s.Desired.Keeper != "" || d.Keeper == model.WorkloadKeeper {
		return
	}
	k.takeovers[d.Pod.UID] = sources.Takeover(d.Source, "pod "+model.RefOf(d.Pod).String(), now)
}

// takeoversOf are those of a source: of its pods, and of its workloads and objects.
func (k *keeper) takeoversOf(source string) (all []sources.Problem) {
	for _, uid := range slices.Sorted(maps.Keys(k.takeovers)) {
		if d := k.kept[uid]; d != nil && d.Keeper == source {
			all = append(all, k.takeovers[uid])
		}
	}
	return sources.Few(source, append(all, k.updates[source].Takeovers...))
}

func byName(a, b *podspec.Desired) int { return model.RefOf(a.Pod).Compare(model.RefOf(b.Pod)) }

// holderNow is holderByHand, of which the checkpoint is read anew if a pod would be deleted for it that is there: a user may
// have deleted it just now. It is not sure if the checkpoint cannot be read.
func (k *keeper) holderNow(d *podspec.Desired) (other *model.PodRef, sure bool) {
	other = k.holderByHand(d)
	if s, there := k.stored[d.Pod.UID]; other == nil || !there || s.Deleting || k.workers.Ending(d.Pod.UID) {
		return other, true
	}
	s, err := k.read(other.UID)
	switch {
	case err != nil:
		return other, false
	case s == nil:
		delete(k.stored, other.UID)
	default:
		k.stored[other.UID] = *s
	}
	return k.holderByHand(d), true
}

// holderByHand is the pod of the same name that was applied by hand, and has another uid or is that of another workload; nil if there
// is none.
func (k *keeper) holderByHand(d *podspec.Desired) *model.PodRef {
	ref := model.RefOf(d.Pod)
	s := k.storedFirst(func(uid types.UID, s *Stored) bool {
		return (uid != ref.UID || !sameOwner(s.Desired.Pod, d.Pod)) && model.RefOf(s.Desired.Pod).SameName(ref) && !s.Deleting && !k.isOwn(s.Desired.Keeper)
	})
	if s == nil {
		return nil
	}
	return new(model.RefOf(s.Desired.Pod))
}

func sameOwner(a, b *v1.Pod) bool {
	one, other := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	return one == other || one != nil && other != nil && one.Kind == other.Kind && one.Name == other.Name
}

// isOwn reports whether a source is one of the agent's.
func (k *keeper) isOwn(source string) bool { return source != "" && slices.Contains(k.order, source) }

// stays reports whether a pod that no source wants is kept as its checkpoint has it: one that was
// applied by hand, and one of which it is not known yet whether its source still wants it.
func (k *keeper) stays(s *Stored) bool {
	switch {
	case s.Deleting:
		return false
	case !k.isOwn(s.Desired.Keeper):
		return k.byHand
	}
	lingers := !k.settled && !k.seen[s.Desired.Pod.UID]
	return !k.merged.Complete || lingers || slices.Contains(k.updates[s.Desired.Keeper].Unread, s.Desired.Source)
}

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

// storedByName is the manifest of a pod that was applied last; nil if there is none.
func (k *keeper) storedByName(name types.NamespacedName) *podspec.Desired {
	s := k.storedFirst(func(_ types.UID, s *Stored) bool {
		return s.Desired.Pod.Namespace == name.Namespace && s.Desired.Pod.Name == name.Name
	})
	if s == nil {
		return nil
	}
	return s.Desired
}

// storedFirst is the first pod that has a checkpoint and is such: one that is not being deleted before
// one that is, then by uid, so that the order of a map decides nothing.
func (k *keeper) storedFirst(such func(types.UID, *Stored) bool) *Stored {
	var first *Stored
	for uid, s := range k.stored {
		if such(uid, &s) && (first == nil || s.before(first)) {
			first = &s
		}
	}
	return first
}

// before reports whether a pod comes before another one of its name.
func (s *Stored) before(other *Stored) bool {
	if s.Deleting != other.Deleting {
		return other.Deleting
	}
	return s.Desired.Pod.UID < other.Desired.Pod.UID
}

// release lets go of a pod that is not wanted. It is deleted if a source brought it, or if its
// deletion has begun; another is not the agent's to delete.
func (k *keeper) release(now time.Time, uid types.UID, d *podspec.Desired) {
	s, known := k.stored[uid]
	switch {
	case !known && d.Stored && !k.workers.Making(uid):
		// Its checkpoint is gone, or cannot be read now.
		k.workers.Forget(uid)
		delete(k.leaving, uid)
	case known && s.Deleting, k.isOwn(d.Keeper) && (!known || k.isOwn(s.Desired.Keeper)):
		k.workers.Remove(now, model.RefOf(d.Pod), nil)
		k.leaving[uid] = d
	default:
		k.workers.Forget(uid)
		delete(k.leaving, uid)
	}
}

// warnings are that a file has taken over a pod, and its other manifests, which do not count.
func (k *keeper) warnings(uid types.UID) (warnings []executor.PodWarning) {
	if p, is := k.takeovers[uid]; is {
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
	delete(k.seen, uid)
	delete(k.takeovers, uid)
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
