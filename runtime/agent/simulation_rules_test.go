package agent

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/sources"
)

// rules check what an agent must never do:
//   - run two passes of a pod, or of two pods with one name, at the same time, unless UIDs identify the pods;
//   - act on a manifest that is not the newest it has received, or replace a newer one;
//   - cancel a deletion or an end, including one of an earlier agent;
//   - stop a container that no manifest, deletion, probe, preemption or shutdown requires to stop;
//   - start a preempted pod before its manifest changes;
//   - end in another state than the one that sources and users want.
//
// They receive the events and do not know how the agent decides.
type rules struct {
	*life
	// delivered holds the pods that each source has sent to this agent. A source that has not sent any has no entry.
	delivered map[string]map[string]*podspec.Desired
	// all is when every source had sent its first update.
	all time.Time
	// seen are the pods that a source has wanted.
	seen map[types.UID]bool
	// newest is the newest version that was recorded of each pod of a source.
	newest map[string]int
	// unwanted are the pods that must be deleted because of a manifest or its absence. ending are those whose deletion
	// has begun.
	unwanted, ending map[types.UID]bool
	// first are the containers that must never be stopped.
	first map[types.UID]int
	// preempted are the pods that a critical pod has preempted.
	preempted map[types.UID]bool
}

func sortedUIDs[V any](m map[types.UID]V) []types.UID { return slices.Sorted(maps.Keys(m)) }

func version(d *podspec.Desired) int {
	n, _ := strconv.Atoi(d.Pod.Annotations["version"])
	return n
}

// resetUpdates resets the updates that sources have sent.
func (r *rules) resetUpdates(delivered map[string]map[string]*podspec.Desired) {
	if r.delivered = delivered; delivered == nil {
		r.delivered = map[string]map[string]*podspec.Desired{}
	}
	r.all, r.seen = time.Time{}, map[types.UID]bool{}
}

// counts reports whether the absence of a pod from all sources is final. All sources must have sent an update. Also,
// one of them must have wanted the pod before, or its file must have had the time to come back.
func (r *rules) counts(uid types.UID) bool {
	return !r.all.IsZero() && (r.seen[uid] || !r.now.Before(r.all.Add(sources.DropDelay)))
}

// recordDeletions records the deletions that the agent must make.
func (r *rules) recordDeletions() {
	if len(r.delivered) == len(sourceNames) && r.all.IsZero() {
		r.all = r.now
	}
	for _, wants := range r.delivered {
		for _, d := range wants {
			r.seen[d.Pod.UID] = true
		}
	}
	for uid, p := range r.pods {
		r.unwanted[uid] = r.unwanted[uid] || p.deleting || r.wantsDeletion(p.desired)
	}
	for _, one := range r.tasks {
		if pass := one.pass; pass != nil && (pass.Kind == podworkers.Sync || pass.Kind == podworkers.End) && r.pods[pass.Ref.UID] == nil {
			r.unwanted[pass.Ref.UID] = r.unwanted[pass.Ref.UID] || r.wantsDeletion(pass.Pod)
		}
	}
}

// restarted handles the end of an agent. The next one knows only what is stored.
func (r *rules) restarted() {
	for uid := range r.ending {
		if p := r.pods[uid]; p == nil || !p.deleting {
			delete(r.ending, uid)
		}
	}
	clear(r.unwanted)
}

// read handles a read of pods by the agent. The agent then knows which pods are gone, even if it did not see the end of
// the deletion.
func (r *rules) read(uids ...types.UID) {
	for _, uid := range uids {
		if r.pods[uid] == nil {
			r.gone(uid)
		}
	}
}

// forgetDeletion handles a pod whose state the agent must read again.
func (r *rules) forgetDeletion(uid types.UID) { delete(r.ending, uid) }

// gone handles the end of a deletion by the agent or a user.
func (r *rules) gone(uid types.UID) {
	delete(r.ending, uid)
	delete(r.unwanted, uid)
}

// isCurrent reports whether a source wants exactly this version of a pod, as far as the agent has been notified.
func (r *rules) isCurrent(d *podspec.Desired) bool {
	for _, wants := range r.delivered {
		if now := wants[d.Pod.Name]; now != nil && now.Pod.UID == d.Pod.UID && version(now) == version(d) {
			return true
		}
	}
	return false
}

// mayBegin checks a pass that the agent begins.
func (r *rules) mayBegin(p *podworkers.Pass) {
	uid := p.Ref.UID
	for _, one := range r.tasks {
		switch {
		case one.pass == nil:
		case one.pass.Ref.UID == uid:
			r.wrong("two passes of %s at the same time", uid)
		}
	}
	if isAPI(uid) {
		r.server.mayBegin(p)
	}
	switch {
	case p.Kind == podworkers.Terminate:
		if p := r.pods[uid]; p != nil && !p.deleting && !r.unwanted[uid] && !r.wantsDeletion(p.desired) {
			r.wrong("%s is deleted without a request", uid)
		}
		r.ending[uid] = true
	case r.ending[uid] && (r.pods[uid] == nil || !r.pods[uid].deleting):
		// If the deletion is recorded, the pass finds it, and mayWrite checks that.
		r.wrong("the deletion of %s is taken back", uid)
	case isAPI(uid):
	case p.Kind == podworkers.Sync && !p.Pod.Stored && r.counts(uid) && !r.isCurrent(p.Pod):
		r.wrong("a pass begins for %s, which is not wanted any more", versionOf(p.Pod))
	case p.Kind == podworkers.Stop && r.agent.stopper.shutdown == nil:
		r.wrong("%s is stopped without a shutdown", uid)
	}
}

// wantsDeletion reports whether a pod may be deleted: its deletion has begun, or every source has sent an update and
// none wants it. The pass checks under the pod's lock whether the pod was applied by hand.
func (r *rules) wantsDeletion(d *podspec.Desired) bool {
	name, uid := d.Pod.Name, d.Pod.UID
	if r.ending[uid] || d.Owner == "" {
		return true
	}
	switch {
	case isAPI(uid):
		return r.server.wantsDeletion(uid)
	case r.heldByHand(name, uid):
		return true
	case !r.counts(uid):
		return false
	}
	for _, source := range sourceNames {
		if d := r.delivered[source][name]; d != nil {
			// If this is another pod, it has the name or will have it.
			return d.Pod.UID != uid
		}
	}
	return true
}

// heldByHand reports whether a user has applied another pod with a name.
func (r *rules) heldByHand(name string, but types.UID) bool {
	for uid, p := range r.pods {
		if uid != but && p.desired.Pod.Name == name && p.desired.Owner == "" {
			return true
		}
	}
	return false
}

// mayWrite checks what a pass records as applied.
func (r *rules) mayWrite(pass *podworkers.Pass, d *podspec.Desired) {
	uid := d.Pod.UID
	if pass == nil {
		delete(r.ending, uid)
		delete(r.unwanted, uid)
		return
	}
	if r.ending[uid] {
		r.wrong("the deletion of %s is taken back", uid)
	}
	r.mayMake(pass)
	if d.Stored {
		return
	}
	key := d.Owner + " " + string(uid)
	if version(d) < r.newest[key] {
		r.wrong("%s takes back version %d", versionOf(d), r.newest[key])
	}
	r.newest[key] = version(d)
}

// mayMake checks the creation of a pod. It must wait for the end of another pod with its name whose pass began before.
// A pass that only finds that its pod does not exist does not matter.
func (r *rules) mayMake(pass *podworkers.Pass) {
	for _, one := range r.tasks {
		if one.pass == pass || r.pods[pass.Ref.UID] != nil || isAPI(pass.Ref.UID) {
			return
		}
		if one.pass != nil && !isAPI(one.pass.Ref.UID) && one.pass.Ref.SameName(pass.Ref) {
			r.wrong("%s is made beside %s, which has its name", pass.Ref.UID, one.pass.Ref.UID)
		}
	}
}

// mayStop checks the stop of a container for a manifest d, or for a deletion if d is nil.
func (r *rules) mayStop(pass *podworkers.Pass, c *container, d *podspec.Desired) {
	if pass == nil {
		return
	}
	p := r.pods[c.uid]
	switch {
	case r.agent.stopper.shutdown != nil:
		delete(r.first, c.uid)
	case c.failing:
	case pass.Kind == podworkers.Terminate, pass.Kind == podworkers.End, p != nil && p.end != nil:
		// The deletion or the end was checked when the pass began.
	case p != nil && p.eviction != nil && r.preempted[c.uid]:
	case d == nil || p == nil || imageOf(p.desired) == c.image:
		r.wrong("container %d of %s is stopped without a request", c.id, c.uid)
	case isAPI(c.uid):
	case !d.Stored && r.counts(c.uid) && !r.isCurrent(d):
		r.wrong("container %d of %s is stopped for %s, which is not wanted any more", c.id, c.uid, versionOf(d))
	}
}

// started records the first container of a pod that must never be stopped.
func (r *rules) started(c *container) {
	if (c.uid == "s1" || c.uid == "h1") && r.first[c.uid] == 0 {
		r.first[c.uid] = c.id
	}
	if p := r.pods[c.uid]; p != nil && p.end != nil {
		r.wrong("container %d of %s is started, although the pod ends", c.id, c.uid)
	}
	if p := r.pods[c.uid]; p != nil && p.eviction != nil {
		r.wrong("container %d of %s is started, although the pod is preempted", c.id, c.uid)
	}
	for _, other := range r.containers {
		if other != c && other.running && other.uid == c.uid {
			r.wrong("containers %d and %d of %s run at the same time", other.id, c.id, c.uid)
		}
	}
}

// wanted returns the state that must be reached: the pods of the first source, then of the second, and pods applied by
// hand. A pod applied by hand is left out if a source uses its name for the same UID.
func (r *rules) wanted() map[types.UID]string {
	all, holders := map[types.UID]string{}, map[string]types.UID{}
	for uid, p := range r.pods {
		if p.desired.Owner == "" && !p.deleting {
			all[uid], holders[p.desired.Pod.Name] = versionOf(p.desired), uid
		}
	}
	for _, source := range sourceNames {
		for name, d := range r.wants[source] {
			if _, taken := holders[name]; !taken {
				all[d.Pod.UID], holders[name] = versionOf(d), d.Pod.UID
			}
		}
	}
	if r.server != nil {
		r.server.addWanted(all)
	}
	for uid, want := range all {
		if p := r.pods[uid]; p != nil && p.eviction != nil && versionOf(p.desired) == want {
			all[uid] = "is preempted"
		}
	}
	return all
}

// converged checks the end: the recorded and running pods are the wanted ones, and the containers that must never be
// stopped are the first ones.
func (r *rules) converged() {
	has := map[types.UID]string{}
	for uid, p := range r.pods {
		if p.end != nil && p.end.Done && r.runs(uid) == nil {
			has[uid] = "has ended"
		} else if p.eviction != nil && p.eviction.Done && !p.deleting && r.runs(uid) == nil {
			has[uid] = "is preempted"
		} else if c := r.runs(uid); c != nil && c.image == imageOf(p.desired) && !p.deleting {
			has[uid] = versionOf(p.desired)
		} else {
			has[uid] = "does not run"
		}
	}
	if want := r.wanted(); !maps.Equal(has, want) {
		r.wrong("in the end there is %v, want %v", has, want)
	}
	for _, c := range r.containers {
		if r.pods[c.uid] == nil {
			r.wrong("in the end there is container %d of %s, which is gone", c.id, c.uid)
		}
	}
	for uid, id := range r.first {
		if c := r.runs(uid); c == nil || c.id != id {
			r.wrong("container %d of %s does not run any more, and no one requested its stop", id, uid)
		}
	}
}
