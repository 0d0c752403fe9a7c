package plan

import (
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/podstatus"
)

// judgeRegular chooses what happens to a regular container, and reports whether it continues to run (kubelet:
// computePodActions, the last loop).
func (c *chooser) judgeRegular(ref podspec.ContainerRef) bool {
	rec := c.Newest(ref.Name)
	switch {
	case rec == nil:
		c.begin(start{ref: ref, cause: notCreated()})
	case rec.State == model.Exited:
		c.judgeExited(ref, rec)
	case rec.State == model.Running:
		if rec.Starting {
			c.waiting = append(c.waiting, waiting{ref: ref, hook: true})
		}
		return c.judgeRunning(ref, rec)
	default:
		c.judgeUnstarted(ref, rec)
	}
	return false
}

// judgeUnstarted starts a container whose record shows no run: it was only created, or the runtime does not know its
// state.
func (c *chooser) judgeUnstarted(ref podspec.ContainerRef, rec *model.Container) {
	if rec.State == model.Created {
		c.begin(start{ref: ref, cause: cause{reason: model.NeverStarted, message: "was created and never started"}})
		return
	}
	c.kill(ref, rec, cause{reason: model.UnknownState, message: "the runtime does not know its state"})
	c.begin(start{ref: ref, cause: cause{reason: model.UnknownState, message: "the runtime did not know its state"}})
}

func (c *chooser) judgeExited(ref podspec.ContainerRef, rec *model.Container) {
	switch {
	case c.AwaitsRestart(ref.Name):
		c.begin(c.pendingStart(ref, rec))
	case podstatus.RestartWanted(c.Manifest, ref.Container, rec), c.opts.restarts(ref.Name):
		c.begin(c.startAgain(ref, rec))
	default:
		c.keep(ref, rec)
	}
}

// startAgain returns the start of a container that has ended.
func (c *chooser) startAgain(ref podspec.ContainerRef, rec *model.Container) start {
	s := start{ref: ref, cause: cause{reason: model.ContainerExited, message: exitText(c.Pod, rec)}}
	if rec.SandboxID != c.Active {
		s.reason, s.message = model.SandboxReplaced, "its sandbox was replaced"
	}
	s.fresh, s.diff = editedSince(c.Pod, ref.Container, rec)
	return s
}

// pendingStart returns the start of a container that podctl stopped for a restart.
func (c *chooser) pendingStart(ref podspec.ContainerRef, rec *model.Container) start {
	s := c.startAgain(ref, rec)
	s.fresh, s.message = true, "it was stopped for a restart and has not been started again"
	return s
}

// judgeRunning checks whether a running container matches the manifest, must restart, is healthy and has its resources.
// It reports whether the container continues to run. A sidecar has already passed its startup probe.
func (c *chooser) judgeRunning(ref podspec.ContainerRef, rec *model.Container) bool {
	if changed, fields := definitionChanged(c.Pod, ref.Container, rec); changed {
		c.replace(ref, rec, cause{model.SpecChanged, fields.Text(), fields})
		return false
	}
	if c.opts.restarts(ref.Name) {
		c.replace(ref, rec, cause{reason: model.RestartRequested, message: "a restart was requested"})
		return false
	}
	for _, t := range []model.ProbeType{model.Liveness, model.Startup} {
		if c.stopFailed(ref, rec, t) {
			return false
		}
	}
	if ref.Type == podspec.Sidecar && !c.isHealthy(ref, rec) {
		c.keep(ref, rec)
		return true
	}
	return c.judgeResources(ref, rec)
}

// judgeResources gives a running container the resources of the manifest, and reports whether it continues to run.
func (c *chooser) judgeResources(ref podspec.ContainerRef, rec *model.Container) bool {
	r := resizingOf(c.Pod, ref.Container, rec)
	switch {
	case r.restarts():
		c.replace(ref, rec, cause{reason: model.Resized, message: r.text()})
		c.updatePod = true
		return false
	case len(r.resized) > 0:
		c.updates = append(c.updates, update{container: rec, ref: ref, changes: r.changes(), grows: r.grows()})
		if ref.Type == podspec.Init {
			c.keep(ref, rec)
		}
	default:
		c.keep(ref, rec)
	}
	return true
}

// isHealthy reports whether a running sidecar counts as healthy: if it has a liveness probe, the probe has run, and its
// effective result is not a failure.
func (c *chooser) isHealthy(ref podspec.ContainerRef, rec *model.Container) bool {
	verdict := c.Verdict(ref.Container, rec, model.Liveness)
	return ref.LivenessProbe == nil || (verdict.HasRun && verdict.Result != model.ProbeFailure)
}

// stopFailed stops a container with a failed probe, and reports whether it did. An unknown result does not count as a
// failure. A failure that is too old and not confirmed since does not count either.
func (c *chooser) stopFailed(ref podspec.ContainerRef, rec *model.Container, t model.ProbeType) bool {
	verdict := c.Verdict(ref.Container, rec, t)
	if verdict.Result != model.ProbeFailure {
		return false
	}
	if verdict.Stale {
		c.holds = append(c.holds, Hold{
			Container: ref.Name, Reason: model.ProbeStale,
			Message: fmt.Sprintf("%s, but that was %s; probe again", verdict.Message, c.Ago(verdict.CountedAt)),
		})
		return false
	}
	why := cause{reason: model.LivenessFailed, message: verdict.Message}
	if t == model.Startup {
		why.reason = model.StartupFailed
	}
	grace := model.ProbeOf(ref.Container, t).TerminationGracePeriodSeconds
	c.kills = append(c.kills, kill{container: rec, ref: ref, cause: why, grace: grace})
	if podstatus.RestartsWhenStopped(c.Manifest, ref.Container) {
		c.begin(start{ref: ref, cause: why})
	}
	return true
}

// replace stops a container and starts it again without a delay. The changes of a sidecar are listed only at its start.
func (c *chooser) replace(ref podspec.ContainerRef, rec *model.Container, why cause) {
	c.begin(start{ref: ref, cause: why, fresh: true})
	if ref.Type == podspec.Sidecar {
		why.diff = diff.Diff{}
	}
	c.kill(ref, rec, why)
}

func (c *chooser) kill(ref podspec.ContainerRef, rec *model.Container, why cause) {
	c.kills = append(c.kills, kill{container: rec, ref: ref, cause: why})
}
