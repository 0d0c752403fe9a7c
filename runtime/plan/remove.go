package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// removeLeftovers stops and removes leftover records, and with a sandbox that is
// replaced all init containers, which run again.
func (l *layout) removeLeftovers(ended []string) {
	for _, r := range l.removed {
		if r.container.State == model.Running && !l.killPod {
			stopper{l}.stopContainer(kill{cause: r.cause, container: r.container}, nil)
		}
		l.removeContainer(r, RemoveOwnLogs, after(ended, l.steps.record(r.container.ID)))
	}
	if l.killPod && l.createSandbox {
		l.purgeInit(ended)
	}
}

// purgeInit removes every record of the init containers: in the new sandbox they
// all run again (kubelet: purgeInitContainers).
func (l *layout) purgeInit(ended []string) {
	why := cause{reason: model.SandboxReplaced, message: "runs again in the new sandbox"}
	for _, ref := range podspec.InitContainers(l.Manifest) {
		for _, rec := range l.Containers {
			if rec.Name == ref.Name && !l.steps.does(RemoveContainer, rec.ID) {
				l.removeContainer(removal{why, rec}, RemoveOwnLogs, after(ended))
			}
		}
	}
}

func (l *layout) removeContainer(r removal, logs Logs, needs Needs) {
	rec := r.container
	l.steps.add(r.explains(Step{
		ID: byID("remove", rec.ID), Kind: RemoveContainer, Needs: needs, OnFailure: Continue, Logs: logs,
		Container: rec.Name, ContainerType: l.refOf(rec).Type, ContainerID: rec.ID, Attempt: rec.RestartCount,
	}))
}

// sweep removes old sandboxes in which no record is left. The newest sandbox
// stays: its attempt is the next one's base (kubelet: evictSandboxes).
func (l *layout) sweep(sandbox, ended []string) {
	for i := range l.Sandboxes {
		s := &l.Sandboxes[i]
		newest := i == 0 && !l.createSandbox
		if newest || (s.State == model.SandboxReady && !l.killPod) || !l.emptied(s.ID) {
			continue
		}
		l.steps.add(Step{
			ID: byID("remove-sandbox", s.ID), Kind: RemoveSandbox, SandboxID: s.ID, Attempt: s.Attempt,
			Needs: after(sandbox, ended, l.endsIn(s.ID)), OnFailure: Continue,
			Reason: model.Superseded, Message: "an older sandbox without containers",
		})
	}
}

// emptied reports whether every record of a sandbox is removed by this plan.
func (l *layout) emptied(sandboxID string) bool {
	return !slices.ContainsFunc(l.Containers, func(rec *model.Container) bool {
		return rec.SandboxID == sandboxID && !l.steps.does(RemoveContainer, rec.ID)
	})
}

func (l *layout) endsIn(sandboxID string) []string {
	var ids []string
	for _, rec := range l.Containers {
		if rec.SandboxID == sandboxID {
			ids = append(ids, l.steps.record(rec.ID)...)
		}
	}
	return ids
}

// layOutDeletion plans for a pod that shall be gone: everything stops in the right
// order, and everything podctl made for it is removed. It is the same plan in
// the same words, with nothing desired. The manifest applied last gives hooks,
// grace period and order; without it the containers' own annotations do.
func layOutDeletion(in *Input) []Step {
	l := newRemoval(in, &in.Options, cause{reason: model.Deleted, message: "the pod is deleted"})
	ended := l.stopAndRemove(KeepLogs)
	if len(l.steps) > 0 || in.Observed.Memory.Generation > 0 {
		l.removeData(ended)
		l.archiveLogs(ended)
	}
	return l.steps
}

// newRemoval begins to take away a pod as it was applied last.
func newRemoval(in *Input, opts *Options, why cause) *layout {
	facts := in.Input
	facts.Desired = in.Observed.Memory.Applied
	return &layout{Pod: podstatus.New(&facts), opts: opts, decision: &decision{choice: choice{cause: why, terminal: true}}}
}

// stopAndRemove stops everything in order and removes every record. It returns the steps after which
// nothing runs.
func (l *layout) stopAndRemove(logs Logs) []string {
	s := stopper{l}
	containers := s.stopRunning(nil)
	all := slices.Clone(containers)
	for i := range l.Sandboxes {
		all = append(all, s.stopSandbox(&l.Sandboxes[i], after(containers)))
	}
	l.removeAll(containers, all, logs)
	return all
}

// deletionHold does nothing for podctl's own copy of a manifest whose pod is being deleted:
// only the user can take that back, with the manifest.
func deletionHold(pod model.PodRef) Hold {
	return Hold{Reason: model.Deleted, Blocking: true, Message: fmt.Sprintf(
		"its deletion has begun and is not finished: podctl delete %s finishes it, podctl apply of its manifest takes it back", pod)}
}

// removeAll removes every record. Containers go once they have ended, while the
// network of their sandbox is taken down.
func (l *layout) removeAll(containers, all []string, logs Logs) {
	for _, rec := range l.Containers {
		l.steps.add(l.cause.explains(Step{
			ID: byID("remove", rec.ID), Kind: RemoveContainer, Needs: after(containers), OnFailure: Abort, Logs: logs,
			Container: rec.Name, ContainerType: l.refOf(rec).Type, ContainerID: rec.ID, Attempt: rec.RestartCount,
		}))
	}
	removed := l.steps.of(RemoveContainer)
	for i := range l.Sandboxes {
		s := &l.Sandboxes[i]
		l.steps.add(l.cause.explains(Step{
			ID: byID("remove-sandbox", s.ID), Kind: RemoveSandbox, SandboxID: s.ID, Attempt: s.Attempt,
			Needs: after(all, removed), OnFailure: Abort,
		}))
	}
}

// removeData removes what lies on disk for the pod, beside the record of its sandbox. Its
// cgroup goes last: a runtime may keep processes of its own there for as long as it has a
// record.
func (l *layout) removeData(all []string) {
	ended := slices.Concat(all, l.steps.of(RemoveContainer))
	gone := slices.Concat(ended, l.steps.of(RemoveSandbox))
	volumes := ""
	if l.opts.RemoveVolumes {
		volumes = l.cause.message + ", and its claims with it"
	}
	for _, s := range []Step{
		{ID: "remove-volumes", Kind: RemoveVolume, Needs: after(ended), OnFailure: Abort, Message: volumes},
		{ID: "remove-cgroup", Kind: RemoveCgroup, Needs: after(gone), OnFailure: Continue},
	} {
		s.Reason, s.Message = l.cause.reason, cmp.Or(s.Message, l.cause.message)
		l.steps.add(s)
	}
}

// archiveLogs keeps the logs of a pod that is gone.
func (l *layout) archiveLogs(all []string) {
	l.steps.add(l.cause.explains(Step{
		ID: "archive-logs", Kind: ArchiveLogs, Needs: after(all, l.steps.of(RemoveContainer)), OnFailure: Continue,
	}))
}

// evictionGrace is how many seconds the containers of an evicted pod have to stop (kubelet:
// immediateEvictionGracePeriodSeconds).
const evictionGrace = 1

// evicted is why the pod is evicted; nil for one that is not. One that shall be made anew is evicted
// until nothing of it is left.
func (in *Input) evicted() *model.Eviction {
	before := in.Observed.Memory.Eviction
	switch {
	case before == nil:
		return in.Options.Evict
	case in.afterEviction() && before.Done:
		return nil
	}
	return before
}

// afterEviction reports whether a pod that was evicted shall be made anew: its manifest is another one,
// or the user restarts it.
func (in *Input) afterEviction() bool {
	m := &in.Observed.Memory
	if m.Eviction == nil || in.Desired == nil || in.Options.Stop {
		return false
	}
	return len(in.Options.Restart) > 0 || m.Applied == nil || !m.Applied.SameManifest(in.Desired)
}

// evict ends the pod, and holds it: everything stops and is removed but its record (kubelet: evictPod,
// cleanUpContainersInPod, SyncTerminatedPod).
func (p *Plan) evict(in *Input, why *model.Eviction) {
	opts := in.Options
	opts.GracePeriod = new(int64(evictionGrace))
	l := newRemoval(in, &opts, cause{reason: model.Evicted, message: "the pod is evicted: too little is left of " + why.Signal})
	ended := l.stopAndRemove(RemoveSupersededLogs)
	if len(l.steps) > 0 || !why.Done {
		l.removeData(ended)
	}
	p.Steps, p.Eviction = l.steps, why
	p.KillPod = len(ended) > 0
	p.Holds = []Hold{evictionHold(in, l.Pod, why)}
}

// evictionHold says why nothing runs of the pod, and how it runs again.
func evictionHold(in *Input, pod *podstatus.Pod, why *model.Eviction) Hold {
	h := Hold{
		Reason: model.Evicted, Blocking: true, Evicted: true, Status: why.Message,
		Message: fmt.Sprintf("evicted %s: %s; it stays so until its manifest changes: podctl restart %s makes it anew",
			pod.Ago(why.At), strings.TrimSuffix(strings.TrimSpace(why.Message), "."), in.Pod),
	}
	if in.afterEviction() {
		h.Unapplied = true
		h.Message = "the pod was evicted, and what is left of it is removed first"
	}
	return h
}
