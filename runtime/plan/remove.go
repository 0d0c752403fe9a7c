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

// removeLeftovers stops and removes leftover records. If the sandbox is replaced, it also removes all init containers,
// which run again.
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

// purgeInit removes all records of the init containers, because all of them run again in the new sandbox (kubelet:
// purgeInitContainers).
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

// sweep removes old sandboxes without records. The newest sandbox stays: the next attempt is derived from its attempt
// (kubelet: evictSandboxes).
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

// emptied reports whether the plan removes every record of a sandbox.
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

// layOutDeletion plans the deletion of a pod: everything stops in the right order, and everything podctl created for it
// is removed. The manifest applied last gives hooks, grace periods and order. Without it the annotations of the
// containers do.
func layOutDeletion(in *Input) []Step {
	l := newRemoval(in, &in.Options, cause{reason: model.Deleted, message: "the pod is deleted"})
	ended := l.stopAndRemove(KeepLogs)
	if len(l.steps) > 0 || in.Observed.Memory.Generation > 0 {
		l.removeData(ended)
		l.archiveLogs(ended)
	}
	return l.steps
}

// newRemoval returns a layout that removes a pod as it was applied last.
func newRemoval(in *Input, opts *Options, why cause) *layout {
	facts := in.Input
	facts.Desired = in.Observed.Memory.Applied
	d := &decision{choice: choice{cause: why, terminal: true}}
	return &layout{Pod: podstatus.New(&facts), opts: opts, decision: d}
}

// stopAndRemove stops everything in order and removes all records. It returns the steps after which nothing runs.
func (l *layout) stopAndRemove(logs Logs) []string {
	containers, all := l.stopAll()
	l.removeAll(containers, all, logs)
	return all
}

// stopAll stops everything in order. It returns the stops of the containers, and those of containers and sandboxes.
func (l *layout) stopAll() (containers, all []string) {
	s := stopper{l}
	containers = s.stopRunning(nil)
	all = slices.Clone(containers)
	for i := range l.Sandboxes {
		if !s.stoppedAlready(&l.Sandboxes[i]) {
			all = append(all, s.stopSandbox(&l.Sandboxes[i], after(containers)))
		}
	}
	return containers, all
}

// deletionHold holds podctl's own copy of a manifest while its pod is being deleted. Only the user can cancel the
// deletion, by applying the manifest.
func deletionHold(in *Input) Hold {
	how := fmt.Sprintf("podctl delete %s finishes it, podctl apply of its manifest cancels it", in.Pod)
	if in.Desired.FromCluster() {
		how = "the agent finishes it"
	}
	return Hold{Reason: model.Deleted, Blocking: true, Message: "its deletion is not finished: " + how}
}

// removeAll removes all records. Containers are removed once they have ended, while the network of their sandbox is
// torn down.
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

// removeData removes the pod's data on disk, beside the record of its sandbox. Its cgroup goes last, because a runtime
// may keep its own processes there until it has no record.
func (l *layout) removeData(all []string) {
	ended := slices.Concat(all, l.steps.of(RemoveContainer))
	gone := slices.Concat(ended, l.steps.of(RemoveSandbox))
	volumes := ""
	if l.opts.RemoveVolumes {
		volumes = l.cause.message + ", with its claims"
	}
	for _, s := range []Step{
		{ID: "remove-volumes", Kind: RemoveVolume, Needs: after(ended), OnFailure: Abort, Message: volumes},
		{ID: "remove-cgroup", Kind: RemoveCgroup, Needs: after(gone), OnFailure: Continue},
	} {
		s.Reason, s.Message = l.cause.reason, cmp.Or(s.Message, l.cause.message)
		l.steps.add(s)
	}
}

// archiveLogs keeps the logs of a deleted pod.
func (l *layout) archiveLogs(all []string) {
	l.steps.add(l.cause.explains(Step{
		ID: "archive-logs", Kind: ArchiveLogs, Needs: after(all, l.steps.of(RemoveContainer)), OnFailure: Continue,
	}))
}

// evictionGrace is how many seconds the containers of an evicted pod have to stop at least (kubelet:
// immediateEvictionGracePeriodSeconds).
const evictionGrace = 1

// evicted returns why the pod is evicted; nil if it is not. A pod that runs again after an eviction stays evicted until
// all its leftovers are removed.
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

// afterEviction reports whether an evicted pod runs again: its manifest has changed, or the user restarts it. A pod of
// the API server never does, because its status is Failed.
func (in *Input) afterEviction() bool {
	m := &in.Observed.Memory
	if m.Eviction == nil || in.Desired == nil || in.Options.Stop || in.ends() || in.Desired.FromCluster() {
		return false
	}
	return len(in.Options.Restart) > 0 || m.Applied == nil || !m.Applied.SameManifest(in.Desired)
}

// evict ends and holds the pod. It stops everything, and a later pass, which observes how the containers ended, removes
// everything except the record of the pod (kubelet: SyncTerminatingPod, SyncTerminatedPod, cleanUpContainersInPod).
func (p *Plan) evict(in *Input, why *model.Eviction) {
	if why.Shutdown && in.Observed.Memory.Applied == nil {
		// The pod has not been admitted.
		v := in.admitter(in.State()).reject(model.ShutdownRejection())
		p.Rejection, p.Eviction, p.Holds = v.rejection, nil, []Hold{*v.hold}
		return
	}
	opts := in.Options
	if opts.GracePeriod = nil; !why.Preempted {
		opts.GracePeriod = new(max(why.GracePeriodSeconds, evictionGrace))
	}
	l := newRemoval(in, &opts, cause{reason: why.Reason(), message: "the pod is " + evictionText(why)})
	if _, stops := l.stopAll(); len(stops) > 0 {
		p.KillPod = true
	} else if l.removeAll(nil, nil, RemoveSupersededLogs); len(l.steps) > 0 || !why.Done {
		l.removeData(nil)
	}
	p.Steps, p.Eviction = l.steps, why
	p.Holds = []Hold{evictionHold(in, l.Pod, why)}
}

// evictionText returns what happens to an evicted pod, and why.
func evictionText(why *model.Eviction) string {
	switch {
	case why.Shutdown:
		return "stopped: the machine shuts down"
	case why.OwnLimit:
		return "evicted: it exceeds its limit of disk space"
	case why.Preempted:
		return "preempted: a critical pod needs its " + why.Signal
	}
	return "evicted: " + why.Signal + " is below its threshold"
}

// evictionHold explains why the pod does not run, and how it runs again.
func evictionHold(in *Input, pod *podstatus.Pod, why *model.Eviction) Hold {
	message := strings.TrimSuffix(strings.TrimSpace(why.Message), ".")
	until := fmt.Sprintf("it stays evicted until its manifest changes; podctl restart %s recreates it", in.Pod)
	if in.Desired.FromCluster() {
		until = "it stays Failed until it is deleted in the API server"
	}
	h := Hold{
		Reason: why.Reason(), Blocking: true, Evicted: true, Status: why.Message,
		Message: fmt.Sprintf("evicted %s: %s; %s", pod.Ago(why.At), message, until),
	}
	if in.afterEviction() {
		h.Unapplied = true
		h.Message = "the pod was evicted, and its leftovers are removed first"
	}
	return h
}

// ends reports whether the pod ends because its source is deleting it. An end that has begun cannot be canceled.
func (in *Input) ends() bool {
	return in.Desired != nil && (in.Options.End || in.Observed.Memory.End != nil)
}

// end ends the pod for good. It stops everything, and a later pass, which observes how the containers ended, removes
// the volumes and the cgroup (kubelet: SyncTerminatingPod, SyncTerminatedPod). The records, logs and the checkpoint
// stay.
func (p *Plan) end(in *Input) {
	p.End = in.Observed.Memory.End.Again(model.Deletion{At: in.Now, GracePeriodSeconds: in.endGrace()})
	opts := in.Options
	opts.End, opts.GracePeriod = true, &p.End.GracePeriodSeconds
	why := cause{reason: model.Deleted, message: "the pod is deleted at its source"}
	l := &layout{Pod: in.State(), opts: &opts, decision: &decision{choice: choice{cause: why, terminal: true}}}
	stopper{l}.stopPod(&proof{})
	p.KillPod = len(l.steps) > 0
	switch {
	case p.KillPod:
		p.End.Done = false
	case !p.End.Done:
		l.removeData(nil)
		p.End.Done = true
	}
	p.Steps = l.steps
	if !p.Pending() {
		p.WaitingFor = []string{"the removal of the pod at its source"}
		return
	}
	left := p.End.At.Add(model.Seconds(p.End.GracePeriodSeconds)).Sub(in.Now)
	p.Notes = []string{fmt.Sprintf("deletion: %.0f s of %d s left", max(left.Seconds(), 0), p.End.GracePeriodSeconds)}
}

// endGrace returns the time in seconds that the pass gives the pod to end: at least one second (kubelet:
// calculateEffectiveGracePeriod).
func (in *Input) endGrace() int64 {
	grace := int64(ShortestStop)
	switch before := in.Observed.Memory.End; {
	case in.Options.GracePeriod != nil:
		grace = *in.Options.GracePeriod
	case before != nil:
		grace = before.GracePeriodSeconds
	case in.Desired.Pod.Spec.TerminationGracePeriodSeconds != nil:
		grace = *in.Desired.Pod.Spec.TerminationGracePeriodSeconds
	}
	return max(grace, 1)
}
