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

// recordReader reads checkpoints and passes them to the keeper.
type recordReader struct{ *loopState }

// watch wakes the pods that use ConfigMaps, Secrets or claims when one changes. It also reads the pods that were
// applied or deleted by hand. The directory of a pod is created shortly before its checkpoint, so watch reads twice.
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

// wakeUsers wakes the pods that refer to a stored object.
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

// news reads the checkpoints of pods that came or went outside the agent. The runtime reports no events for pods
// without containers. The checkpoints that passes write are read when the pass ends.
func (r *recordReader) news() {
	remembered, err := r.world.Records.Remembered()
	if err != nil {
		return // The next read of all checkpoints logs the error.
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

// made reads the checkpoint of a pod after its first pass or a failed pass. Only the disk shows how far the pass came
// and whether a user has deleted the pod since. made also reads the checkpoint of a pod applied by hand that has the
// same name. If that pod still exists, the new one is deleted.
func (r *recordReader) made(d *podspec.Desired) {
	if other := r.keeper.holderByHand(d); other != nil {
		r.one(other.UID)
	}
	r.one(d.Pod.UID)
}
