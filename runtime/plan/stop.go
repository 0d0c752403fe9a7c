package plan

import (
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// stopper lays out stops.
type stopper struct{ *layout }

// stop adds the steps that stop and reset, and returns those after which nothing runs of
// a pod that is stopped as a whole.
func (l *layout) stop(proof *proof) []string {
	s := stopper{l}
	if l.killPod {
		return s.stopPod(proof)
	}
	for _, k := range l.kills {
		// Each only after it is proven that it can be started again.
		s.stopContainer(k, After(proof.checks[k.ref.Name]))
	}
	s.resetContainers()
	s.stopOutlived()
	return nil
}

// stopPod stops every running container and then every sandbox (kubelet:
// killPodWithSyncResult). Where something runs nothing is stopped before all that shall
// start again is proven.
func (s stopper) stopPod(proof *proof) []string {
	var gate []string
	if s.createSandbox && s.AnyRunning() {
		gate = proof.all
	}
	ended := s.stopRunning(gate)
	for i := range s.Sandboxes {
		sandbox := &s.Sandboxes[i]
		if (s.terminal && sandbox.State != model.SandboxReady) || s.stoppedAlready(sandbox) {
			continue
		}
		ended = append(ended, s.stopSandbox(sandbox, after(gate, ended)))
	}
	return ended
}

func (s stopper) stopSandbox(sandbox *model.Sandbox, needs Needs) string {
	return s.steps.add(Step{
		ID: byID("stop-sandbox", sandbox.ID), Kind: StopSandbox, SandboxID: sandbox.ID, Needs: needs,
		OnFailure: Abort, Reason: s.cause.reason, Message: s.cause.message,
	})
}

// stoppedAlready reports whether podctl has stopped a sandbox before. One that ended by
// itself is stopped once, so that the runtime takes its network down.
func (s stopper) stoppedAlready(sandbox *model.Sandbox) bool {
	last := s.Observed.Memory.LastRun
	return sandbox.State != model.SandboxReady && last != nil && slices.Contains(last.Stopped, sandbox.ID)
}

// stopRunning stops all running containers, wherever they run, once the gate is
// open. All begin at once; a sidecar ends after the regular containers and after
// the sidecars that come later in the manifest.
func (s stopper) stopRunning(gate []string) []string {
	var all, regular []string
	sidecars := map[string]string{}
	for _, rec := range s.stopOrder() {
		ref := s.refOf(rec)
		needs := after(gate)
		if ref.Type == podspec.Sidecar {
			needs = needs.with(Edge{Phase: Stop}, slices.Concat(regular, laterSidecars(s.Manifest, ref, sidecars)))
		}
		id := s.stopContainer(kill{cause: s.causeOf(rec), container: rec, ref: ref}, needs)
		all = append(all, id)
		if ref.Type == podspec.Sidecar {
			sidecars[ref.Name] = id
		} else if ref.Type != podspec.Init && ref.Type != podspec.Ephemeral {
			regular = append(regular, id)
		}
	}
	return all
}

// causeOf is why a container is stopped with its pod: the pod's cause, or its own if it would
// be stopped even if the pod stayed.
func (s stopper) causeOf(rec *model.Container) cause {
	why := cause{reason: s.cause.reason, message: s.cause.message}
	for _, own := range s.kills {
		if own.container.ID == rec.ID {
			why.reason, why.message = own.reason, own.message
		}
	}
	return why
}

// laterSidecars are the stops of the sidecars that come after ref in the
// manifest: they end before it.
func laterSidecars(pod *v1.Pod, ref podspec.ContainerRef, stops map[string]string) []string {
	var ids []string
	for _, other := range podspec.InitContainers(pod) {
		if other.Type == podspec.Sidecar && other.Index > ref.Index {
			ids = append(ids, stops[other.Name])
		}
	}
	return ids
}

// stopOrder lists the running containers in the order in which they are
// stopped: regular ones and all others first, sidecars last and in reverse.
func (s stopper) stopOrder() []*model.Container {
	var order, sidecars []*model.Container
	for _, rec := range s.Containers {
		switch {
		case rec.State != model.Running:
		case s.refOf(rec).Type == podspec.Sidecar:
			sidecars = append(sidecars, rec)
		default:
			order = append(order, rec)
		}
	}
	slices.SortStableFunc(sidecars, func(a, b *model.Container) int { return s.refOf(b).Index - s.refOf(a).Index })
	return append(order, sidecars...)
}

// stopOutlived stops what runs although a newer record has taken its place: a replacement
// may begin before the stop of what it replaces has ended, and that one may fail or be cut
// off. (A kubelet looks at the newest record of a name alone.)
func (s stopper) stopOutlived() {
	for _, rec := range s.Containers {
		newest := s.Newest(rec.Name)
		if rec.State != model.Running || rec == newest || leftManifest(s.Pod, rec) || len(s.steps.record(rec.ID)) > 0 {
			continue
		}
		why := cause{reason: model.Superseded, message: fmt.Sprintf("attempt %d has taken its place", newest.RestartCount)}
		s.stopContainer(kill{cause: why, container: rec, ref: s.refOf(rec)}, nil)
	}
}

func (s stopper) stopContainer(k kill, needs Needs) string {
	step := Step{
		ID: byID("stop", k.container.ID), Kind: StopContainer, Needs: needs, OnFailure: Abort,
		Container: k.container.Name, ContainerType: k.ref.Type, ContainerID: k.container.ID, SandboxID: k.container.SandboxID,
	}
	// Without any time no hook runs, although the runtime is never given less than the
	// shortest.
	grace := s.grace(k)
	if grace > 0 {
		step.PreStop = preStopOf(k)
	}
	if s.opts.GracePeriod == nil {
		grace = max(grace, ShortestStop)
	}
	grace = min(grace, longestStop)
	step.GracePeriodSeconds = &grace
	return s.steps.add(k.explains(step))
}

// ShortestStop is the shortest time the kubelet ever gives a container to stop,
// in seconds (kubelet: minimumGracePeriodInSeconds).
const ShortestStop = 2

// longestStop is the longest time a container gets to stop, in seconds: runtimes count in
// nanoseconds, which do not hold all that a manifest may ask for.
const longestStop = math.MaxInt32

// grace is the time a container has to stop. In a pod that ends for good there is always
// some, so that hooks run (kubelet: calculateEffectiveGracePeriod).
func (s stopper) grace(k kill) int64 {
	grace := s.graceOf(k)
	if s.opts.GracePeriod == nil && s.terminal {
		return max(grace, 1)
	}
	return grace
}

// graceOf is the user's word, else that of the probe that failed, else the pod's, else what
// was written on the container when it was created (kubelet: setTerminationGracePeriod).
func (s stopper) graceOf(k kill) int64 {
	var pod *int64
	if s.Manifest != nil {
		pod = s.Manifest.Spec.TerminationGracePeriodSeconds
	}
	order := []*int64{s.opts.GracePeriod, k.grace, pod, k.container.GracePeriod}
	if k.ref.Container == nil {
		// It has left the manifest: what it was created with is its own.
		order = []*int64{s.opts.GracePeriod, k.container.GracePeriod, pod}
	}
	for _, grace := range order {
		if grace != nil {
			return *grace
		}
	}
	return ShortestStop
}

// preStopOf names the hook that runs before a container is stopped: today's, or
// the one it was created with when it has left the manifest.
func preStopOf(k kill) string {
	if k.ref.Container == nil {
		return k.container.PreStop
	}
	if k.ref.Lifecycle == nil {
		return ""
	}
	return model.HandlerName(k.ref.Lifecycle.PreStop)
}

// resetContainers stops and removes what a restart of all containers takes
// away, one after the other. No hook runs and no time is given.
func (s stopper) resetContainers() {
	var last []string
	why := cause{reason: model.RestartAllContainers, message: "a restart rule asks to restart all containers"}
	for _, r := range s.resets {
		step := Step{
			Needs: after(last), OnFailure: Abort, Container: r.ref.Name, ContainerType: r.ref.Type, ContainerID: r.container.ID,
		}
		if r.kill {
			stop, shortest := step, int64(ShortestStop)
			stop.ID, stop.Kind = byID("stop", r.container.ID), StopContainer
			stop.SandboxID, stop.GracePeriodSeconds = r.container.SandboxID, &shortest
			step.Needs = After(s.steps.add(why.explains(stop)))
		}
		step.ID, step.Kind = byID("remove", r.container.ID), RemoveContainer
		step.Logs, step.RestartsAll = RemoveOlderLogs, true
		last = []string{s.steps.add(why.explains(step))}
	}
}
