package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/sleep"
)

// recordReader reads checkpoints, and lets the keeper know what they say.
type recordReader struct{ *loopState }

// watch has the pods that name ConfigMaps, Secrets or claims looked at when one has changed, and those that were applied or
// deleted by hand. The directory of a pod is made a moment before its checkpoint, so there is a second look.
func (r *recordReader) watch(ctx context.Context) {
	objects, pods, looks := r.world.Records.ObjectsChangedAt(), time.Time{}, 0
	for sleep.For(ctx, changesEach) == nil {
		if now := r.world.Records.ObjectsChangedAt(); !now.Equal(objects) {
			objects = now
			r.inbox.post(ctx, r.wakeUsers)
		}
		if now := r.world.Records.PodsChangedAt(); !now.Equal(pods) {
			pods, looks = now, 2
		}
		if looks > 0 {
			looks--
			r.inbox.post(ctx, r.news)
		}
	}
}

// wakeUsers has the pods looked at that name a stored object.
func (r *recordReader) wakeUsers() {
	for uid, d := range r.keeper.kept {
		if len(podspec.ReferredObjects(d.Pod)) > 0 {
			r.workers.Wake(r.now(), uid)
		}
	}
}

// all reads all checkpoints.
func (r *recordReader) all() error {
	stored, unreadable, err := r.world.Records.All()
	if err != nil {
		return err
	}
	r.log.unreadable(unreadable)
	r.keeper.recordsSay(r.now(), stored, unreadable)
	return nil
}

// news reads the checkpoints of pods that came or went beside the agent: the runtime says nothing of one that has no
// container. What a pass has made is read when the pass ends.
func (r *recordReader) news() {
	remembered, err := r.world.Records.Remembered()
	if err != nil {
		return // The next reading of all checkpoints says so.
	}
	is, news := map[types.UID]bool{}, map[types.UID]bool{}
	for _, uid := range remembered {
		_, known := r.keeper.stored[uid]
		is[uid], news[uid] = true, !known && !r.keeper.unreadable[uid]
	}
	for uid := range r.keeper.stored {
		news[uid] = news[uid] || !is[uid]
	}
	for _, uid := range slices.Sorted(maps.Keys(news)) {
		if news[uid] && r.running[uid] == nil {
			r.one(uid)
		}
	}
}

// one reads the checkpoint of one pod.
func (r *recordReader) one(uid types.UID) {
	stored, err := r.world.Records.Read(uid)
	if err != nil {
		r.log.unreadable(map[types.UID]error{uid: err})
		r.keeper.recordUnreadable(uid)
		return
	}
	r.keeper.recordSays(r.now(), uid, stored)
}

// made reads what was remembered of a pod in its first pass, or in one that failed: how far it came, and whether somebody
// has deleted the pod since, is known on disk alone. So is whether its name is taken still: it is deleted if it is.
func (r *recordReader) made(d *podspec.Desired) {
	if other := r.keeper.holderByHand(d); other != nil {
		r.one(other.UID)
	}
	r.one(d.Pod.UID)
}
