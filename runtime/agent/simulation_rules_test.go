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

// rules are what an agent may never do:
//   - two passes of a pod, or of two pods of one name, at the same time;
//   - anything for a manifest that is not the newest that it was told, and to take a newer one back;
//   - to take a deletion back, also one of an agent before it;
//   - to stop a container that no manifest, deletion, probe or shutdown asks to stop;
//   - to end with anything else than what sources and users want.
//
// They are told of what happens and know nothing of how the agent decides.
type rules struct {
	*life
	// delivered is what each source has told this agent; nothing for one that has not spoken.
	delivered map[string]map[string]*podspec.Desired
	// all is when the last of them spoke for the first time.
	all time.Time
	// seen are the pods that one of them has wanted.
	seen map[types.UID]bool
	// newest is the newest version that was written down of a pod of a source.
	newest map[string]int
	// unwanted are the pods that some manifest, or its absence, has asked to delete, ending those whose
	// deletion has begun.
	unwanted, ending map[types.UID]bool
	// first are the containers that nobody ever asks to stop.
	first map[types.UID]int
}

func sortedUIDs[V any](m map[types.UID]V) []types.UID { return slices.Sorted(maps.Keys(m)) }

func version(d *podspec.Desired) int {
	n, _ := strconv.Atoi(d.Pod.Annotations["version"])
	return n
}

// told forgets what sources have told.
func (r *rules) told(delivered map[string]map[string]*podspec.Desired) {
	if r.delivered = delivered; delivered == nil {
		r.delivered = map[string]map[string]*podspec.Desired{}
	}
	r.all, r.seen = time.Time{}, map[types.UID]bool{}
}

// counts reports whether it counts that no source wants a pod: all have spoken, and one has wanted it before or its file
// had the time to come back.
func (r *rules) counts(uid types.UID) bool {
	return !r.all.IsZero() && (r.seen[uid] || !r.now.Before(r.all.Add(sources.Lingers)))
}

// heard takes note of what the agent has been asked to delete.
func (r *rules) heard() {
	if len(r.delivered) == len(sourceNames) && r.all.IsZero() {
		r.all = r.now
	}
	for _, wants := range r.delivered {
		for _, d := range wants {
			r.seen[d.Pod.UID] = true
		}
	}
	for uid, p := range r.pods {
		r.unwanted[uid] = r.unwanted[uid] || p.deleting || r.asksEnd(p.desired)
	}
	for _, one := range r.tasks {
		if pass := one.pass; pass != nil && pass.Kind == podworkers.Sync && r.pods[pass.Ref.UID] == nil {
			r.unwanted[pass.Ref.UID] = r.unwanted[pass.Ref.UID] || r.asksEnd(pass.Pod)
		}
	}
}

// restarted is the end of an agent: the next one knows only what is written down.
func (r *rules) restarted() {
	for uid := range r.ending {
		if p := r.pods[uid]; p == nil || !p.deleting {
			delete(r.ending, uid)
		}
	}
	clear(r.unwanted)
}

// read is what an agent reads of pods: it knows who is gone, also if it did not see the end of the deletion.
func (r *rules) read(uids ...types.UID) {
	for _, uid := range uids {
		if r.pods[uid] == nil {
			r.gone(uid)
		}
	}
}

// notOurs is a pod of which the agent has to find out anew what it is.
func (r *rules) notOurs(uid types.UID) { delete(r.ending, uid) }

// gone is the end of a deletion, by the agent or by a user.
func (r *rules) gone(uid types.UID) {
	delete(r.ending, uid)
	delete(r.unwanted, uid)
}

// isCurrent reports whether a source wants a pod exactly so, as far as the agent was told.
func (r *rules) isCurrent(d *podspec.Desired) bool {
	for _, wants := range r.delivered {
		if now := wants[d.Pod.Name]; now != nil && now.Pod.UID == d.Pod.UID && version(now) == version(d) {
			return true
		}
	}
	return false
}

// mayBegin holds a pass that the agent begins.
func (r *rules) mayBegin(p *podworkers.Pass) {
	uid := p.Ref.UID
	for _, one := range r.tasks {
		switch {
		case one.pass == nil:
		case one.pass.Ref.UID == uid:
			r.wrong("two passes of %s at the same time", uid)
		}
	}
	switch {
	case p.Kind == podworkers.Terminate:
		if p := r.pods[uid]; p != nil && !p.deleting && !r.unwanted[uid] && !r.asksEnd(p.desired) {
			r.wrong("%s is deleted, and nobody asked for it", uid)
		}
		r.ending[uid] = true
	case r.ending[uid] && (r.pods[uid] == nil || !r.pods[uid].deleting):
		// Of one that is written down the pass finds out, and mayWrite holds it.
		r.wrong("the deletion of %s is taken back", uid)
	case p.Kind == podworkers.Sync && !p.Pod.Stored && r.counts(uid) && !r.isCurrent(p.Pod):
		r.wrong("a pass begins for %s, which is not wanted any more", versionOf(p.Pod))
	case p.Kind == podworkers.Stop && r.agent.ending.order == nil:
		r.wrong("%s is stopped without a shutdown", uid)
	}
}

// asksEnd reports whether a pod may be deleted: its deletion has begun, or every source has spoken
// and none wants it. That of a pod that was applied by hand is found out under its lock.
func (r *rules) asksEnd(d *podspec.Desired) bool {
	name, uid := d.Pod.Name, d.Pod.UID
	if r.ending[uid] || d.Keeper == "" {
		return true
	}
	switch {
	case r.heldByHand(name, uid):
		return true
	case !r.counts(uid):
		return false
	}
	for _, source := range sourceNames {
		if d := r.delivered[source][name]; d != nil {
			// If it is another pod, that one has the name or will have it.
			return d.Pod.UID != uid
		}
	}
	return true
}

// heldByHand reports whether somebody has applied another pod of a name.
func (r *rules) heldByHand(name string, but types.UID) bool {
	for uid, p := range r.pods {
		if uid != but && p.desired.Pod.Name == name && p.desired.Keeper == "" {
			return true
		}
	}
	return false
}

// mayWrite holds what a pass writes down as applied.
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
	key := d.Keeper + " " + string(uid)
	if version(d) < r.newest[key] {
		r.wrong("%s takes back version %d", versionOf(d), r.newest[key])
	}
	r.newest[key] = version(d)
}

// mayMake holds a pod that is made: it waits for the end of another one of its name whose pass began before. A pass that only
// finds that nothing is there of its pod disturbs nobody.
func (r *rules) mayMake(pass *podworkers.Pass) {
	for _, one := range r.tasks {
		if one.pass == pass || r.pods[pass.Ref.UID] != nil {
			return
		}
		if one.pass != nil && one.pass.Ref.SameName(pass.Ref) {
			r.wrong("%s is made beside %s, which has its name", pass.Ref.UID, one.pass.Ref.UID)
		}
	}
}

// mayStop holds a stop: for a manifest d, or for a deletion.
func (r *rules) mayStop(pass *podworkers.Pass, c *container, d *podspec.Desired) {
	if pass == nil {
		return
	}
	p := r.pods[c.uid]
	switch {
	case r.agent.ending.order != nil:
		delete(r.first, c.uid)
	case c.failing:
	case pass.Kind == podworkers.Terminate:
		// Whether the pod may be deleted was held when the pass began.
	case d == nil || p == nil || imageOf(p.desired) == c.image:
		r.wrong("container %d of %s is stopped, and nobody asked for it", c.id, c.uid)
	case !d.Stored && r.counts(c.uid) && !r.isCurrent(d):
		r.wrong("container %d of %s is stopped for %s, which is not wanted any more", c.id, c.uid, versionOf(d))
	}
}

// started takes note of the first container of a pod that nobody asks to stop.
func (r *rules) started(c *container) {
	if (c.uid == "s1" || c.uid == "h1") && r.first[c.uid] == 0 {
		r.first[c.uid] = c.id
	}
	for _, other := range r.containers {
		if other != c && other.running && other.uid == c.uid {
			r.wrong("containers %d and %d of %s run at the same time", other.id, c.id, c.uid)
		}
	}
}

// wanted is what there shall be in the end: what the first source wants, then the second, and what
// was applied by hand and whose name no source gives to the same uid.
func (r *rules) wanted() map[types.UID]string {
	all, holders := map[types.UID]string{}, map[string]types.UID{}
	for uid, p := range r.pods {
		if p.desired.Keeper == "" && !p.deleting {
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
	return all
}

// converged holds the end: what is written down and runs is what is wanted, and what nobody ever asked
// to stop is what ran at first.
func (r *rules) converged() {
	has := map[types.UID]string{}
	for uid, p := range r.pods {
		if c := r.runs(uid); c != nil && c.image == imageOf(p.desired) && !p.deleting {
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
			r.wrong("container %d of %s does not run any more, and nobody asked to stop it", id, uid)
		}
	}
}
