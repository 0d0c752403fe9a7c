package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/sleep"
)

// recordReader reads checkpoints and passes them to the reconciler.
type recordReader struct{ *loopState }

// watch wakes the pods that use ConfigMaps, Secrets or claims when one changes. It also reads the pods that were
// applied or deleted by hand. The directory of a pod is created shortly before its checkpoint, so watch reads twice.
func (r *recordReader) watch(ctx context.Context) {
	objects, pods, reads := r.world.Records.ObjectsChangedAt(), time.Time{}, 0
	for sleep.For(ctx, checkInterval) == nil {
		if now := r.world.Records.ObjectsChangedAt(); !now.Equal(objects) {
			objects = now
			r.inbox.post(ctx, r.wakeUsers)
		}
		if now := r.world.Records.PodsChangedAt(); !now.Equal(pods) {
			pods, reads = now, 2
		}
		if reads > 0 {
			reads--
			r.inbox.post(ctx, r.readChanged)
		}
	}
}

// wakeUsers wakes the pods that refer to a stored object.
func (r *recordReader) wakeUsers() {
	for uid, d := range r.reconciler.kept {
		if len(podspec.ReferredObjects(d.Pod)) > 0 {
			r.workers.Wake(r.now(), uid)
		}
	}
}

// readAll reads all checkpoints.
func (r *recordReader) readAll() error {
	stored, unreadable, err := r.world.Records.All()
	if err != nil {
		return err
	}
	r.log.logUnreadable(unreadable)
	r.reconciler.handleRecords(r.now(), stored, unreadable)
	return nil
}

// readChanged reads the checkpoints of pods that were added or removed outside the agent. The runtime reports no events
// for pods without containers. The checkpoints that passes write are read when the pass ends.
func (r *recordReader) readChanged() {
	uids, err := r.world.Records.CheckpointUIDs()
	if err != nil {
		return // The next read of all checkpoints logs the error.
	}
	exists, changed := map[types.UID]bool{}, map[types.UID]bool{}
	for _, uid := range uids {
		_, known := r.reconciler.stored[uid]
		exists[uid], changed[uid] = true, !known && !r.reconciler.unreadable[uid]
	}
	for uid := range r.reconciler.stored {
		changed[uid] = changed[uid] || !exists[uid]
	}
	for _, uid := range slices.Sorted(maps.Keys(changed)) {
		if changed[uid] && r.running[uid] == nil {
			r.readOne(uid)
		}
	}
}

// readOne reads the checkpoint of one pod.
func (r *recordReader) readOne(uid types.UID) {
	stored, err := r.world.Records.Read(uid)
	if err != nil {
		r.log.logUnreadable(map[types.UID]error{uid: err})
		r.reconciler.unreadable[uid] = true
		return
	}
	r.reconciler.handleRecord(r.now(), uid, stored)
}

// noteSync updates the record of a pod after a pass that syncs or evicts it. It reports whether the pod requests
// fewer resources than before.
func (r *recordReader) noteSync(p *passResult) (shrinks bool) {
	made := cmp.Or(p.planned(), &plan.Plan{})
	_, known := r.reconciler.stored[p.pass.Ref.UID]
	switch {
	case p.err != nil, !known:
		r.readAfterPass(p.pass.Pod)
	case made.PendingResize != nil:
		r.reconciler.recordApplied(p.pod())
	case !made.Refused():
		return r.reconciler.recordApplied(p.pass.Pod)
	}
	return false
}

// readAfterPass reads the checkpoint of a pod after its first pass or a failed pass. Only the checkpoint shows which
// steps the pass has completed and whether a user has deleted the pod since. readAfterPass also reads the checkpoint of
// a pod applied by hand that has the same name. If that pod still exists, the new one is deleted.
func (r *recordReader) readAfterPass(d *podspec.Desired) {
	if other := r.reconciler.nameHolder(d); other != nil {
		r.readOne(other.UID)
	}
	r.readOne(d.Pod.UID)
}
