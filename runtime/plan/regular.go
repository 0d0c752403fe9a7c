package plan

import (
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// decideRegular chooses what happens to the regular containers, and returns how
// many of them go on running (kubelet: computePodActions, the last loop).
func (d *decision) decideRegular(v *view) int {
	kept := 0
	for _, ref := range podspec.RegularContainers(v.pod) {
		c := v.newest(ref.Name)
		switch {
		case c == nil:
			d.startRegular(ref, model.NotCreated, "not created yet")
		case c.State == model.Created:
			d.startRegular(ref, model.NeverStarted, "was created and never started")
		case c.State == model.Unknown:
			d.killRegular(ref, c, model.UnknownState, "the runtime does not know its state")
			d.startRegular(ref, model.UnknownState, "the runtime did not know its state")
		case c.State == model.Exited:
			d.decideExited(v, ref, c)
		case d.keepsRunning(v, ref, c):
			kept++
		}
	}
	return kept
}

func (d *decision) decideExited(v *view, ref podspec.ContainerRef, c *model.Container) {
	if v.awaitsRestart(ref.Name) {
		d.regularStart = append(d.regularStart, v.startOwed(ref))
		return
	}
	if restartWanted(v.pod, ref.Container, c) || v.restartRequested(ref) {
		d.regularStart = append(d.regularStart, v.startAgain(ref))
		return
	}
	d.keeps = append(d.keeps, v.keepOf(ref, c))
}

// keepsRunning judges a running container: whether it still is what the
// manifest says, is healthy and has its resources.
func (d *decision) keepsRunning(v *view, ref podspec.ContainerRef, c *model.Container) bool {
	if changed, diff := v.definitionChanged(ref.Container, c); changed {
		text := changeText(diff.changes)
		d.kills = append(d.kills, kill{container: c, ref: ref, reason: model.SpecChanged, message: text, diff: diff})
		d.regularStart = append(d.regularStart, start{ref: ref, reason: model.SpecChanged, message: text, diff: diff, fresh: true})
		return false
	}
	if v.restartRequested(ref) {
		d.killRegular(ref, c, model.RestartRequested, restartText)
		d.regularStart = append(d.regularStart, start{ref: ref, reason: model.RestartRequested, message: restartText, fresh: true})
		return false
	}
	if d.killUnhealthy(v, ref, c) {
		return false
	}
	switch v.resizeOf(ref.Container, c) {
	case resizeRestarts:
		message := v.resizeText(ref.Container, c)
		d.killRegular(ref, c, model.Resized, message)
		d.regularStart = append(d.regularStart, start{ref: ref, reason: model.Resized, message: message, fresh: true})
		d.updatePod = true
		return false
	case resizeInPlace:
		d.updates = append(d.updates, v.updateOf(ref, c))
		return true
	case resizeNone:
	}
	d.keeps = append(d.keeps, v.keepOf(ref, c))
	return true
}

// killUnhealthy stops a container whose liveness or startup probe has failed.
// Not knowing is no failure, and neither is a failure nobody has confirmed for
// too long.
func (d *decision) killUnhealthy(v *view, ref podspec.ContainerRef, c *model.Container) bool {
	for _, t := range []model.ProbeType{model.Liveness, model.Startup} {
		verdict := v.judge(ref.Container, c, t)
		if verdict.result != model.ProbeFailure {
			continue
		}
		if verdict.stale {
			d.holdStale(ref, verdict)
			continue
		}
		reason := failedReason(t)
		d.killRegular(ref, c, reason, verdict.message)
		if mayRestart(v.pod, ref.Container) {
			d.startRegular(ref, reason, verdict.message)
		}
		return true
	}
	return false
}

func failedReason(t model.ProbeType) model.Reason {
	if t == model.Startup {
		return model.StartupFailed
	}
	return model.LivenessFailed
}

func (d *decision) startRegular(ref podspec.ContainerRef, reason model.Reason, message string) {
	d.regularStart = append(d.regularStart, start{ref: ref, reason: reason, message: message})
}

func (d *decision) killRegular(ref podspec.ContainerRef, c *model.Container, reason model.Reason, message string) {
	d.kills = append(d.kills, kill{container: c, ref: ref, reason: reason, message: message})
}
