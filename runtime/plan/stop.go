package plan

import (
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// stopper lays out stops.
type stopper struct{ *layout }

// stop adds the steps that stop and reset. For a pod that stops as a whole, it returns the steps after which nothing
// runs.
func (l *layout) stop(proof *proof) []string {
	s := stopper{l}
	if l.killPod {
		return s.stopPod(proof)
	}
	for _, k := range l.kills {
		// The stop waits for the check that the container can start again.
		s.stopContainer(k, After(proof.checks[k.ref.Name]))
	}
	s.resetContainers()
	s.stopSuperseded()
	return nil
}

// stopPod stops all running containers and then all sandboxes (kubelet: killPodWithSyncResult). If something runs, the
// stops wait for the checks of everything that starts again.
func (s stopper) stopPod(proof *proof) []string {
	var gate []string
	if s.createSandbox && s.AnyRunning() {
		gate = proof.all
	}
	ended := s.stopRunning(gate)
	for i := range s.Sandboxes {
		sandbox := &s.Sandboxes[i]
		finished := s.terminal && !s.opts.End && sandbox.State != model.SandboxReady && !unstopped(s.Pod, sandbox)
		if finished || s.stoppedAlready(sandbox) {
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

// stoppedAlready reports whether podctl has stopped a sandbox before. A sandbox that ended by itself is stopped once,
// so that the runtime tears down its network.
func (s stopper) stoppedAlready(sandbox *model.Sandbox) bool {
	last := s.Observed.Memory.LastRun
	return sandbox.State != model.SandboxReady && last != nil && slices.Contains(last.Stopped, sandbox.ID)
}

// unstopped reports whether a sandbox has ended that the last pass left running. Its stop was interrupted, or it ended
// by itself, so the runtime may still have its network. A kubelet stops all sandboxes of a finished pod again when it
// starts.
func unstopped(pod *podstatus.Pod, sandbox *model.Sandbox) bool {
	last := pod.Observed.Memory.LastRun
	return sandbox.State != model.SandboxReady && last != nil && last.Sandbox == sandbox.ID &&
		!slices.Contains(last.Stopped, sandbox.ID)
}

// stopRunning stops all running containers in any sandbox once the gate is open. All stops begin at once. A sidecar
// ends after the regular containers and after the sidecars that come later in the manifest.
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

// causeOf returns why a container is stopped with its pod: the pod's cause, or its own if it would stop even if the pod
// stayed.
func (s stopper) causeOf(rec *model.Container) cause {
	why := cause{reason: s.cause.reason, message: s.cause.message}
	for _, own := range s.kills {
		if own.container.ID == rec.ID {
			why.reason, why.message = own.reason, own.message
		}
	}
	return why
}

// laterSidecars returns the stops of the sidecars that come after ref in the manifest. They end before it.
func laterSidecars(pod *v1.Pod, ref podspec.ContainerRef, stops map[string]string) []string {
	var ids []string
	for _, other := range podspec.InitContainers(pod) {
		if other.Type == podspec.Sidecar && other.Index > ref.Index {
			ids = append(ids, stops[other.Name])
		}
	}
	return ids
}

// stopOrder lists the running containers in the order in which they stop: sidecars last and in reverse order.
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

// stopSuperseded stops running containers that a newer record has replaced. A replacement may start before the stop of
// the old container has ended, and that stop may fail or be interrupted. A kubelet checks only the newest record of a
// name.
func (s stopper) stopSuperseded() {
	for _, rec := range s.Containers {
		newest := s.Newest(rec.Name)
		if rec.State != model.Running || rec == newest || leftManifest(s.Pod, rec) || len(s.steps.record(rec.ID)) > 0 {
			continue
		}
		message := fmt.Sprintf("attempt %d has replaced it", newest.RestartCount)
		why := cause{reason: model.Superseded, message: message}
		s.stopContainer(kill{cause: why, container: rec, ref: s.refOf(rec)}, nil)
	}
}

func (s stopper) stopContainer(k kill, needs Needs) string {
	step := Step{
		ID:            byID("stop", k.container.ID),
		Kind:          StopContainer,
		Needs:         needs,
		OnFailure:     Abort,
		Container:     k.container.Name,
		ContainerType: k.ref.Type,
		ContainerID:   k.container.ID,
		SandboxID:     k.container.SandboxID,
	}
	// With a grace period of zero no hook runs. The runtime still gets at least the shortest grace period.
	grace := s.grace(k)
	if grace > 0 {
		step.PreStop = preStopOf(k)
	}
	if s.opts.GracePeriod == nil || s.opts.End {
		grace = max(grace, ShortestStop)
	}
	grace = min(grace, longestStop)
	step.GracePeriodSeconds = &grace
	return s.steps.add(k.explains(step))
}

// ShortestStop is the shortest time that the kubelet gives a container to stop, in seconds (kubelet:
// minimumGracePeriodInSeconds).
const ShortestStop = 2

// longestStop is the longest time a container gets to stop, in seconds. Runtimes count in nanoseconds, which overflow
// with larger values.
const longestStop = math.MaxInt32

// grace returns the time in seconds a container has to stop. In a pod that ends for good it is at least one second, so
// that hooks run (kubelet: calculateEffectiveGracePeriod).
func (s stopper) grace(k kill) int64 {
	grace := s.graceOf(k)
	if s.terminal && (s.opts.GracePeriod == nil || s.opts.End) {
		return max(grace, 1)
	}
	return grace
}

// graceOf returns the first grace period that is set: by the user, the failed probe, the pod, or the annotation that
// the container was created with (kubelet: setTerminationGracePeriod).
func (s stopper) graceOf(k kill) int64 {
	var pod *int64
	if s.Manifest != nil {
		pod = s.Manifest.Spec.TerminationGracePeriodSeconds
	}
	order := []*int64{s.opts.GracePeriod, k.grace, pod, k.container.GracePeriod}
	if k.ref.Container == nil {
		// For a container that left the manifest, the value it was created with comes before the pod's.
		order = []*int64{s.opts.GracePeriod, k.container.GracePeriod, pod}
	}
	for _, grace := range order {
		if grace != nil {
			return *grace
		}
	}
	return ShortestStop
}

// preStopOf returns the handler name of the hook that runs before a container stops: the manifest's, or for a container
// that left the manifest, the one it was created with.
func preStopOf(k kill) string {
	if k.ref.Container == nil {
		return k.container.PreStop
	}
	if k.ref.Lifecycle == nil {
		return ""
	}
	return model.HandlerName(k.ref.Lifecycle.PreStop)
}

// resetContainers stops and removes what a restart of all containers removes, one after the other. No hook runs, and
// the grace period is the shortest.
func (s stopper) resetContainers() {
	var last []string
	why := cause{reason: model.RestartAllContainers, message: "a restart rule asks to restart all containers"}
	for _, r := range s.resets {
		step := Step{
			Needs:         after(last),
			OnFailure:     Abort,
			Container:     r.ref.Name,
			ContainerType: r.ref.Type,
			ContainerID:   r.container.ID,
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
