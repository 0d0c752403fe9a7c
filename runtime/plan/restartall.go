package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// reset is a record that a restart of all containers takes away.
type reset struct {
	container *model.Container
	ref       podspec.ContainerRef
	kill      bool
}

// restartsAll tells that a container ended in a way for which its rules ask to
// restart the whole pod (kubelet: ShouldAllContainersRestart).
func (v *view) restartsAll() bool {
	for _, ref := range runsInPod(v.pod) {
		c := v.newest(ref.Name)
		if c != nil && c.State == model.Exited && asksForAll(ref.Container, c) {
			return true
		}
	}
	return false
}

// runsInPod lists init containers, sidecars and regular containers.
func runsInPod(pod *v1.Pod) []podspec.ContainerRef {
	return append(podspec.InitContainers(pod), podspec.RegularContainers(pod)...)
}

func asksForAll(spec *v1.Container, c *model.Container) bool {
	rule, ok := matchingRule(spec, c.ExitCode)
	return ok && rule.Action == v1.ContainerRestartRuleActionRestartAllContainers
}

// resetAll takes away every record of the pod, so that the next pass starts
// from the first init container. Containers that are the cause go last: as long
// as one of them is there, an interrupted reset is taken up again.
func (d *decision) resetAll(v *view) {
	regular, regularSource := v.resets(podspec.RegularContainers(v.pod))
	inits, initSource := v.resets(podspec.InitContainers(v.pod))
	for _, part := range [][]reset{regular, inits, regularSource, initSource} {
		d.resets = append(d.resets, part...)
	}
}

// What a container is shown with whose records a restart of all containers has taken away
// (kubelet: RestartingAllContainers).
const (
	restartingAll     = "RestartingAllContainers"
	restartingAllText = "The container is removed because RestartAllContainers in place"
)

// wasReset tells that podctl took away the records of a container to restart all, and that
// it ran before: it has left a log.
func (v *view) wasReset(ref podspec.ContainerRef) bool {
	left := v.obs.Memory.LastRun
	switch {
	case left == nil || left.Sandbox != v.active || !slices.Contains(left.Reset, ref.Name):
		return false
	case v.newest(ref.Name) != nil, ref.Type == podspec.Init && v.anyRegularRecord():
		return false
	}
	_, ran := v.obs.LogAttempts[ref.Name]
	return ran
}

// resetting tells that a restart of all containers is under way: some are still to be
// removed, or nothing has been started since.
func (v *view) resetting() bool {
	left := slices.ContainsFunc(runsInPod(v.pod), func(ref podspec.ContainerRef) bool { return v.newest(ref.Name) != nil })
	return !left || v.restartsAll()
}

// runsAgain tells that a pod seems to be pending only because containers were reset, which
// count as stopped and about to start again (kubelet: getPhase).
func (v *view) runsAgain() bool {
	t, some := v.tally(), false
	for _, ref := range runsInPod(v.pod) {
		if !v.wasReset(ref) {
			continue
		}
		some = true
		switch ref.Type {
		case podspec.Init:
			t.pendingInit--
		case podspec.Sidecar:
			t.pendingSidecar--
			t.waiting--
		case podspec.Regular:
			t.waiting--
		case podspec.Ephemeral:
		}
	}
	initialised := t.pendingSidecar == 0 || v.initialised()
	return some && v.phase == v1.PodPending && initialised && t.pendingInit == 0 && t.waiting+t.unknown == 0
}

func (v *view) resets(refs []podspec.ContainerRef) (targets, sources []reset) {
	for _, ref := range refs {
		for _, c := range v.containers {
			switch {
			case c.Name != ref.Name:
			case c.State != model.Exited:
				targets = append(targets, reset{container: c, ref: ref, kill: true})
			case asksForAll(ref.Container, c):
				sources = append(sources, reset{container: c, ref: ref})
			default:
				targets = append(targets, reset{container: c, ref: ref})
			}
		}
	}
	return targets, sources
}
