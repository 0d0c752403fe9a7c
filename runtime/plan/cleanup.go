package plan

import (
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
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
