package plan

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// reset is a record that a restart of all containers takes away.
type reset struct {
	container *Container
	ref       podspec.ContainerRef
	kill      bool
}

// restartsAll tells that a container ended in a way for which its rules ask to
// restart the whole pod (kubelet: ShouldAllContainersRestart).
func (v *view) restartsAll() bool {
	for _, ref := range runsInPod(v.pod) {
		c := v.newest(ref.Name)
		if c != nil && c.State == Exited && asksForAll(ref.Container, c) {
			return true
		}
	}
	return false
}

// runsInPod lists init containers, sidecars and regular containers.
func runsInPod(pod *v1.Pod) []podspec.ContainerRef {
	return append(podspec.InitContainers(pod), podspec.RegularContainers(pod)...)
}

func asksForAll(spec *v1.Container, c *Container) bool {
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

func (v *view) resets(refs []podspec.ContainerRef) (targets, sources []reset) {
	for _, ref := range refs {
		for _, c := range v.containers {
			switch {
			case c.Name != ref.Name:
			case c.State != Exited:
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
