package plan

import (
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// stopPod stops every running container and then every sandbox (kubelet:
// killPodWithSyncResult). Sidecars are stopped last, in reverse order. Where something runs
// nothing is stopped before all that shall start again is proven.
func (b *builder) stopPod() {
	var gate []string
	if b.d.createSandbox && b.v.anyRunning() {
		gate = b.proofs
	}
	b.stopRunning(gate)
	for i := range b.v.sandboxes {
		s := &b.v.sandboxes[i]
		if (b.d.terminal && s.State != model.SandboxReady) || b.v.stoppedAlready(s) {
			continue
		}
		b.stops = append(b.stops, b.add(Step{
			ID: byID("stop-sandbox", s.ID), Kind: StopSandbox, SandboxID: s.ID,
			After: after(gate, b.stops), OnFailure: Abort, Reason: b.killReason(), Message: b.killMessage(),
		}))
	}
}

// stoppedAlready tells that podctl has stopped a sandbox before. One that ended by
// itself is stopped once, so that the runtime takes its network down.
func (v *view) stoppedAlready(s *model.Sandbox) bool {
	left := v.obs.Memory.LastRun
	return s.State != model.SandboxReady && left != nil && slices.Contains(left.Stopped, s.ID)
}

func (b *builder) killReason() model.Reason {
	return model.Reason(firstOf(string(b.d.reason), string(model.Completed)))
}

func (b *builder) killMessage() string {
	return firstOf(b.d.message, "the pod has finished")
}

// stopRunning stops all running containers, wherever they run, once the gate is
// open. All begin at once; a sidecar ends after the regular containers and after
// the sidecars that come later in the manifest.
func (b *builder) stopRunning(gate []string) {
	sidecars := map[string]string{}
	var plain []string
	for _, c := range b.v.stopOrder() {
		ref := b.refOf(c)
		id := b.stopContainer(kill{container: c, ref: ref, reason: b.killReason(), message: b.killMessage()}, gate)
		b.explainStop(c)
		b.stops = append(b.stops, id)
		if ref.Type != podspec.Sidecar {
			if ref.Type != podspec.Init && ref.Type != podspec.Ephemeral {
				plain = append(plain, id)
			}
			continue
		}
		b.p.Steps[len(b.p.Steps)-1].StopAfter = after(plain, laterSidecars(b.v.pod, ref, sidecars))
		sidecars[ref.Name] = id
	}
}

// explainStop gives the stop that was added last the reason for which its
// container would be stopped even if the pod stayed. Its grace period is the
// pod's all the same, as the whole pod is stopped.
func (b *builder) explainStop(c *model.Container) {
	step := &b.p.Steps[len(b.p.Steps)-1]
	for _, own := range b.d.kills {
		if own.container.ID == c.ID {
			step.Reason, step.Message = own.reason, own.message
		}
	}
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
func (v *view) stopOrder() []*model.Container {
	var order []*model.Container
	for _, c := range v.containers {
		if c.State == model.Running && !v.isSidecar(c.Name) {
			order = append(order, c)
		}
	}
	if v.pod == nil {
		return order
	}
	for _, ref := range slices.Backward(podspec.InitContainers(v.pod)) {
		for _, c := range v.containers {
			if ref.Type == podspec.Sidecar && c.Name == ref.Name && c.State == model.Running {
				order = append(order, c)
			}
		}
	}
	return order
}

func (v *view) isSidecar(name string) bool {
	if v.pod == nil {
		return false
	}
	ref, ok := podspec.FindContainer(v.pod, name)
	return ok && ref.Type == podspec.Sidecar
}

// stopContainers stops single containers, each only after it is proven that it
// can be started again.
func (b *builder) stopContainers() {
	for _, k := range b.d.kills {
		b.stopContainer(k, after([]string{b.checks[k.ref.Name]}))
	}
}

// stopOutlived stops what runs although a newer record has taken its place: a replacement
// may begin before the stop of what it replaces has ended, and that one may fail or be cut
// off. (A kubelet looks at the newest record of a name alone.)
func (b *builder) stopOutlived() {
	for _, c := range b.v.containers {
		newest := b.v.newest(c.Name)
		if c.State != model.Running || c == newest || b.v.leftManifest(c) || len(b.endsOfRecord(c.ID)) > 0 {
			continue
		}
		message := fmt.Sprintf("attempt %d has taken its place", newest.RestartCount)
		b.stopContainer(kill{container: c, ref: b.refOf(c), reason: model.Superseded, message: message}, nil)
	}
}

func (b *builder) stopContainer(k kill, waits []string) string {
	step := Step{
		ID: byID("stop", k.container.ID), Kind: StopContainer, After: after(waits), OnFailure: Abort,
		Container: k.container.Name, ContainerType: k.ref.Type, ContainerID: k.container.ID,
		SandboxID: k.container.SandboxID,
		Reason:    k.reason, Message: k.message, Changes: k.diff.changes, Unchanged: k.diff.unchanged,
	}
	grace := b.grace(k)
	if grace > 0 {
		step.PreStop = preStopOf(k)
	}
	if b.v.opts.GracePeriod == nil {
		grace = max(grace, ShortestStop)
	}
	grace = min(grace, longestStop)
	step.GracePeriodSeconds = &grace
	return b.add(step)
}

// grace is the time a container has to stop. In a pod that ends for good there is always
// some, so that hooks run (kubelet: calculateEffectiveGracePeriod).
func (b *builder) grace(k kill) int64 {
	grace := b.v.grace(k)
	if b.v.opts.GracePeriod == nil && (b.d.terminal || b.d.reason == model.Deleted) {
		return max(grace, 1)
	}
	return grace
}

// ShortestStop is the shortest time the kubelet ever gives a container to stop,
// in seconds (kubelet: minimumGracePeriodInSeconds).
const ShortestStop = 2

// longestStop is the longest time a container gets to stop, in seconds: runtimes count in
// nanoseconds, which do not hold all that a manifest may ask for.
const longestStop = math.MaxInt32

// grace is the time a container has to stop: the user's word, else that of the
// probe that failed, else the pod's, else what was written on the container
// when it was created (kubelet: setTerminationGracePeriod). Without any time no
// hook runs, although the runtime is never given less than the shortest.
func (v *view) grace(k kill) int64 {
	if v.opts.GracePeriod != nil {
		return *v.opts.GracePeriod
	}
	if own := probeGrace(k); own != nil {
		return *own
	}
	switch {
	case v.pod != nil && k.ref.Container != nil && v.pod.Spec.TerminationGracePeriodSeconds != nil:
		return *v.pod.Spec.TerminationGracePeriodSeconds
	case k.container.GracePeriod != nil:
		return *k.container.GracePeriod
	case v.pod != nil && v.pod.Spec.TerminationGracePeriodSeconds != nil:
		return *v.pod.Spec.TerminationGracePeriodSeconds
	}
	return ShortestStop
}

func probeGrace(k kill) *int64 {
	if k.ref.Container == nil {
		return nil
	}
	switch {
	case k.reason == model.LivenessFailed && k.ref.LivenessProbe != nil:
		return k.ref.LivenessProbe.TerminationGracePeriodSeconds
	case k.reason == model.StartupFailed && k.ref.StartupProbe != nil:
		return k.ref.StartupProbe.TerminationGracePeriodSeconds
	}
	return nil
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
func (b *builder) resetContainers() {
	var last []string
	for _, r := range b.d.resets {
		if r.kill {
			none := int64(ShortestStop)
			last = []string{b.add(Step{
				ID: byID("stop", r.container.ID), Kind: StopContainer, After: last, OnFailure: Abort,
				Container: r.ref.Name, ContainerType: r.ref.Type, ContainerID: r.container.ID,
				SandboxID: r.container.SandboxID, GracePeriodSeconds: &none,
				Reason: model.RestartAllContainers, Message: "a restart rule asks to restart all containers",
			})}
		}
		last = []string{b.add(Step{
			ID: byID("remove", r.container.ID), Kind: RemoveContainer, After: last, OnFailure: Abort,
			Container: r.ref.Name, ContainerType: r.ref.Type, ContainerID: r.container.ID,
			Reason: model.RestartAllContainers, Message: "a restart rule asks to restart all containers",
		})}
	}
	if len(b.d.resets) > 0 {
		b.d.waiting = append(b.d.waiting, "the next pass, which starts from the first container again")
	}
}
