package plan

import (
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// makeDeletion plans for a pod that shall be gone: everything stops in the right
// order, and everything podctl made for it is removed. It is the same plan in
// the same words, with nothing desired. The manifest applied last gives hooks,
// grace period and order; without it the containers' own annotations do.
func makeDeletion(v *view, p *Plan) {
	if applied := v.obs.Memory.Applied; applied != nil {
		v.desired, v.pod = applied, applied.Pod
	}
	b := newBuilder(v, &decision{reason: model.Deleted, message: "the pod is deleted"}, p)
	b.stopRunning(nil)
	b.removeAll(b.stopSandboxes())
	if len(p.Steps) > 0 || v.obs.Memory.Generation > 0 {
		b.removeData()
	}
}

// holdDeleted does nothing for podctl's own copy of a manifest whose pod is being deleted:
// only the user can take that back, with the manifest.
func holdDeleted(p *Plan) {
	p.Holds = append(p.Holds, Hold{Reason: model.Deleted, Message: fmt.Sprintf(
		"its deletion has begun and is not finished: podctl delete %s finishes it, podctl apply of its manifest takes it back", p.Pod)})
}

func (b *builder) refOf(c *model.Container) podspec.ContainerRef {
	if b.v.pod == nil {
		return podspec.ContainerRef{}
	}
	ref, _ := podspec.FindContainer(b.v.pod, c.Name)
	return ref
}

// stopSandboxes stops every sandbox once all containers have ended, and returns the
// stops of those.
func (b *builder) stopSandboxes() []string {
	containers := b.stops
	for i := range b.v.sandboxes {
		s := &b.v.sandboxes[i]
		b.stops = append(b.stops, b.add(Step{
			ID: byID("stop-sandbox", s.ID), Kind: StopSandbox, SandboxID: s.ID, After: after(containers),
			OnFailure: Abort, Reason: model.Deleted, Message: b.d.message,
		}))
	}
	return containers
}

// removeAll removes every record. Containers go once they have ended, while the
// network of their sandbox is taken down.
func (b *builder) removeAll(ended []string) {
	for _, c := range b.v.containers {
		ref := b.refOf(c)
		b.add(Step{
			ID: byID("remove", c.ID), Kind: RemoveContainer, After: after(ended), OnFailure: Abort,
			Container: c.Name, ContainerType: ref.Type, ContainerID: c.ID, Attempt: c.RestartCount,
			Reason: model.Deleted, Message: b.d.message,
		})
	}
	removed := b.stepsOf(RemoveContainer)
	for i := range b.v.sandboxes {
		s := &b.v.sandboxes[i]
		b.add(Step{
			ID: byID("remove-sandbox", s.ID), Kind: RemoveSandbox, SandboxID: s.ID, Attempt: s.Attempt,
			After: after(b.stops, removed), OnFailure: Abort, Reason: model.Deleted, Message: b.d.message,
		})
	}
}

// removeData removes what lies on disk for the pod, beside the record of its sandbox. Its
// cgroup goes last: a runtime may keep processes of its own there for as long as it has a
// record.
func (b *builder) removeData() {
	ended := after(b.stops, b.stepsOf(RemoveContainer))
	gone := after(ended, b.stepsOf(RemoveSandbox))
	message := b.d.message
	if b.v.opts.RemoveVolumes {
		message += ", and its claims with it"
	}
	for _, s := range []Step{
		{ID: "remove-volumes", Kind: RemoveVolume, After: ended, OnFailure: Abort, Message: message},
		{ID: "remove-cgroup", Kind: RemoveCgroup, After: gone, OnFailure: Continue},
		{ID: "archive-logs", Kind: ArchiveLogs, After: ended, OnFailure: Continue},
	} {
		s.Reason, s.Message = model.Deleted, firstOf(s.Message, b.d.message)
		b.add(s)
	}
}
