package plan

import (
	"cmp"
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// initWalk visits the init containers from the last to the first. The last one with a record shows the progress of the
// pod (kubelet: computeInitContainerActions).
type initWalk struct {
	*chooser
	inits []podspec.ContainerRef
	// done reports whether the regular containers may run. seen reports whether a later init container, or a regular
	// one, has a record.
	done, seen bool
	// failed reports whether an init container failed for good.
	failed bool
}

// walkInits chooses which init containers and sidecars start or stop, and reports whether the regular containers may
// run.
func (c *chooser) walkInits() bool {
	w := &initWalk{chooser: c, inits: podspec.InitContainers(c.Manifest)}
	if len(w.inits) == 0 {
		return true
	}
	w.done = c.Initialised()
	w.seen = w.done
	for i := len(w.inits) - 1; i >= 0 && !w.failed; i-- {
		w.visit(i)
	}
	if w.failed {
		c.killPod, c.inits = true, nil
		return false
	}
	if !w.seen {
		w.begin(start{ref: w.inits[0], cause: notCreated()})
	}
	slices.SortStableFunc(c.inits, func(a, b start) int { return cmp.Compare(a.ref.Index, b.ref.Index) })
	return w.done
}

func (w *initWalk) visit(i int) {
	ref := w.inits[i]
	rec := w.Current(ref.Name)
	sidecar := ref.Type == podspec.Sidecar
	switch {
	case rec == nil && w.seen && sidecar:
		w.begin(start{ref: ref, cause: notCreated()})
	case rec == nil:
	case w.seen && !sidecar:
		w.keep(ref, rec)
	case sidecar:
		w.visitSidecar(i, rec)
	default:
		w.visitPlain(i, rec)
	}
	w.seen = w.seen || rec != nil
}

func (w *initWalk) visitPlain(i int, rec *model.Container) {
	ref := w.inits[i]
	switch rec.State {
	case model.Created:
		w.judgeUnstarted(ref, rec)
	case model.Running:
		if w.judgeResources(ref, rec) {
			w.waiting = append(w.waiting, waiting{ref: ref})
		}
	case model.Exited:
		w.visitExited(i, rec)
	case model.Unknown:
		w.failed = !podstatus.RestartsWhenStopped(w.Manifest, ref.Container)
		if !w.failed {
			w.judgeUnstarted(ref, rec)
		}
	}
}

func (w *initWalk) visitExited(i int, rec *model.Container) {
	ref := w.inits[i]
	switch {
	case w.AwaitsRestart(ref.Name):
		w.begin(w.pendingStart(ref, w.Newest(ref.Name)))
	case !podstatus.InitFailed(rec):
		w.keep(ref, rec)
		w.succeed(i)
	case podstatus.RestartWanted(w.Manifest, ref.Container, rec):
		w.begin(start{ref: ref, cause: cause{reason: model.InitFailed, message: exitText(w.Pod, rec)}})
	default:
		w.failed = true
	}
}

// succeed starts what comes after a finished init container or a started sidecar.
func (w *initWalk) succeed(i int) {
	if i == len(w.inits)-1 {
		w.done = true
	} else if !w.seen {
		w.begin(start{ref: w.inits[i+1], cause: notCreated()})
	}
}

func (w *initWalk) visitSidecar(i int, rec *model.Container) {
	ref := w.inits[i]
	switch rec.State {
	case model.Running:
		if w.sidecarStarted(ref, rec) {
			w.succeed(i)
			w.judgeRunning(ref, rec)
		}
	case model.Exited:
		w.begin(start{ref: ref, cause: cause{reason: model.ContainerExited, message: exitText(w.Pod, rec)}})
	case model.Created, model.Unknown:
		w.judgeUnstarted(ref, rec)
	}
}

// sidecarStarted checks the startup probe. A sidecar without one counts as started at once. It blocks the init
// containers after the sidecar.
func (w *initWalk) sidecarStarted(ref podspec.ContainerRef, rec *model.Container) bool {
	verdict := w.Verdict(ref.Container, rec, model.Startup)
	switch {
	case rec.Starting:
		w.keep(ref, rec)
		w.waiting = append(w.waiting, waiting{ref: ref, hook: true})
	case ref.StartupProbe == nil, verdict.Result == model.ProbeSuccess:
		return true
	case verdict.Result == model.ProbeUnknown:
		w.keep(ref, rec)
		w.waiting = append(w.waiting, waiting{ref: ref})
	case !w.stopFailed(ref, rec, model.Startup):
		w.keep(ref, rec)
	}
	return false
}
