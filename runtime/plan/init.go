package plan

import (
	"fmt"
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// initWalk goes over the init containers from the last to the first: the last
// one that has a record tells how far the pod has come (kubelet:
// computeInitContainerActions).
type initWalk struct {
	v     *view
	d     *decision
	inits []podspec.ContainerRef
	// done tells that the regular containers may run, seen that a later init
	// container, or a regular one, has a record.
	done, seen bool
	// failed tells that an init container failed for good.
	failed bool
	// starts are collected from the last to the first.
	starts []start
}

// decideInit chooses which init containers and sidecars start or stop, and
// returns whether the regular containers may run.
func (d *decision) decideInit(v *view) bool {
	inits := podspec.InitContainers(v.pod)
	if len(inits) == 0 {
		return true
	}
	w := &initWalk{v: v, d: d, inits: inits, done: v.initialisedBefore()}
	w.seen = w.done
	for i := len(inits) - 1; i >= 0 && !w.failed; i-- {
		w.visit(i)
	}
	if w.failed {
		d.killPod, d.initStart = true, nil
		return false
	}
	if !w.seen {
		w.start(0, model.NotCreated, "not created yet")
	}
	for _, v := range slices.Backward(w.starts) {
		d.initStart = append(d.initStart, v)
	}
	return w.done
}

// initialisedBefore tells that a regular container has come as far as being
// created in the active sandbox, which it can only after initialisation.
func (v *view) initialisedBefore() bool {
	for _, ref := range podspec.RegularContainers(v.pod) {
		if c := v.current(ref.Name); c != nil && (c.State == model.Created || c.State == model.Running) {
			return true
		}
	}
	return false
}

func (w *initWalk) visit(i int) {
	ref := w.inits[i]
	c := w.v.current(ref.Name)
	sidecar := ref.Type == podspec.Sidecar
	switch {
	case c == nil && w.seen && sidecar:
		w.start(i, model.NotCreated, "not created yet")
	case c == nil:
	case w.seen && !sidecar:
		w.keep(ref, c)
	case sidecar:
		w.visitSidecar(i, c)
	default:
		w.visitPlain(i, c)
	}
	w.seen = w.seen || c != nil
}

func (w *initWalk) visitPlain(i int, c *model.Container) {
	ref := w.inits[i]
	switch c.State {
	case model.Created:
		w.start(i, model.NeverStarted, "was created and never started")
	case model.Running:
		if !w.resize(i, c) {
			w.wait(ref, c)
		}
	case model.Exited:
		if w.v.awaitsRestart(ref.Name) {
			w.starts = append(w.starts, w.v.startOwed(ref))
			return
		}
		if initFailed(c) {
			w.retry(i, c)
			return
		}
		w.keep(ref, c)
		w.succeed(i)
	case model.Unknown:
		w.retryUnknown(i, c)
	}
}

// initFailed tells that an init container did not do its work. One that was
// killed for its memory has failed whatever its exit code says.
func initFailed(c *model.Container) bool {
	return c.ExitCode != 0 || c.Reason == "OOMKilled"
}

func (w *initWalk) retry(i int, c *model.Container) {
	if !restartWanted(w.v.pod, w.inits[i].Container, c) {
		w.failed = true
		return
	}
	w.start(i, model.InitFailed, exitText(w.v, c))
}

func (w *initWalk) retryUnknown(i int, c *model.Container) {
	if !mayRestart(w.v.pod, w.inits[i].Container) {
		w.failed = true
		return
	}
	w.kill(i, c, model.UnknownState, "the runtime does not know its state")
	w.start(i, model.UnknownState, "the runtime did not know its state")
}

// succeed goes on from a finished init container, or a started sidecar, to what
// comes after it.
func (w *initWalk) succeed(i int) {
	if i == len(w.inits)-1 {
		w.done = true
		return
	}
	w.start(i+1, model.NotCreated, "not created yet")
}

func (w *initWalk) visitSidecar(i int, c *model.Container) {
	switch c.State {
	case model.Created:
		w.start(i, model.NeverStarted, "was created and never started")
	case model.Running:
		w.visitRunningSidecar(i, c)
	case model.Exited:
		w.start(i, model.ContainerExited, exitText(w.v, c))
	case model.Unknown:
		w.kill(i, c, model.UnknownState, "the runtime does not know its state")
		w.start(i, model.UnknownState, "the runtime did not know its state")
	}
}

func (w *initWalk) visitRunningSidecar(i int, c *model.Container) {
	ref := w.inits[i]
	if !w.sidecarStarted(i, c) {
		return
	}
	if i == len(w.inits)-1 {
		w.done = true
	} else if !w.seen {
		w.start(i+1, model.NotCreated, "not created yet")
	}
	if changed, diff := w.v.definitionChanged(ref.Container, c); changed {
		w.kill(i, c, model.SpecChanged, changeText(diff.changes))
		w.startFresh(i, diff)
		return
	}
	if w.v.restartRequested(ref) {
		w.kill(i, c, model.RestartRequested, restartText)
		w.starts = append(w.starts, start{ref: ref, reason: model.RestartRequested, message: restartText, fresh: true})
		return
	}
	if ref.LivenessProbe != nil && !w.sidecarLives(i, c) {
		return
	}
	if !w.resize(i, c) {
		w.keep(ref, c)
	}
}

// sidecarStarted asks the startup probe, without which a sidecar counts as
// started at once. It gates the init containers after the sidecar.
func (w *initWalk) sidecarStarted(i int, c *model.Container) bool {
	ref := w.inits[i]
	if ref.StartupProbe == nil {
		return true
	}
	verdict := w.v.judge(ref.Container, c, model.Startup)
	switch verdict.result {
	case model.ProbeSuccess:
		return true
	case model.ProbeFailure:
		if !w.holdStale(ref, c, verdict) {
			w.kill(i, c, model.StartupFailed, verdict.message)
			w.start(i, model.StartupFailed, verdict.message)
		}
	case model.ProbeUnknown:
		w.keep(ref, c)
		w.d.waiting = append(w.d.waiting, fmt.Sprintf("sidecar %s to pass its startup probe", ref.Name))
	}
	return false
}

// sidecarLives asks the liveness probe; without a verdict the sidecar is left
// alone.
func (w *initWalk) sidecarLives(i int, c *model.Container) bool {
	ref := w.inits[i]
	verdict := w.v.judge(ref.Container, c, model.Liveness)
	switch verdict.result {
	case model.ProbeSuccess:
		return true
	case model.ProbeFailure:
		if !w.holdStale(ref, c, verdict) {
			w.kill(i, c, model.LivenessFailed, verdict.message)
			w.start(i, model.LivenessFailed, verdict.message)
		}
	case model.ProbeUnknown:
		if verdict.found {
			return true
		}
		w.keep(ref, c)
	}
	return false
}

func (w *initWalk) holdStale(ref podspec.ContainerRef, c *model.Container, verdict judgement) bool {
	if !verdict.stale {
		return false
	}
	w.d.holdStale(ref, verdict)
	w.keep(ref, c)
	return true
}

func (w *initWalk) start(i int, reason model.Reason, message string) {
	w.starts = append(w.starts, start{ref: w.inits[i], reason: reason, message: message})
}

func (w *initWalk) startFresh(i int, diff difference) {
	w.starts = append(w.starts, start{
		ref: w.inits[i], reason: model.SpecChanged, message: changeText(diff.changes), diff: diff, fresh: true,
	})
}

func (w *initWalk) kill(i int, c *model.Container, reason model.Reason, message string) {
	w.d.kills = append(w.d.kills, kill{container: c, ref: w.inits[i], reason: reason, message: message})
}

func (w *initWalk) keep(ref podspec.ContainerRef, c *model.Container) {
	w.d.keeps = append(w.d.keeps, w.v.keepOf(ref, c))
}

func (w *initWalk) wait(ref podspec.ContainerRef, c *model.Container) {
	w.keep(ref, c)
	w.d.waiting = append(w.d.waiting, fmt.Sprintf("init container %s to finish", ref.Name))
}

// resize handles a container whose resources changed; true when that settled
// what happens to it.
func (w *initWalk) resize(i int, c *model.Container) bool {
	switch w.v.resizeOf(w.inits[i].Container, c) {
	case resizeRestarts:
		message := w.v.resizeText(w.inits[i].Container, c)
		w.kill(i, c, model.Resized, message)
		w.starts = append(w.starts, start{ref: w.inits[i], reason: model.Resized, message: message, fresh: true})
		w.d.updatePod = true
		return true
	case resizeInPlace:
		w.d.updates = append(w.d.updates, w.v.updateOf(w.inits[i], c))
		return w.inits[i].Type == podspec.Sidecar
	case resizeNone:
	}
	return false
}
