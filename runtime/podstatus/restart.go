package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// RestartWanted decides whether a container with the record c runs again: by its own restart rules, then its own
// policy, then the pod's (kubelet: ShouldContainerBeRestarted).
func RestartWanted(pod *v1.Pod, spec *v1.Container, c *model.Container) bool {
	if c == nil {
		return true
	}
	switch c.State {
	case model.Running:
		return false
	case model.Created, model.Unknown:
		return true
	case model.Exited:
	}
	return RestartsAfter(pod, spec, c.ExitCode)
}

// RestartsAfter decides by an exit code alone (kubelet: ContainerShouldRestart).
func RestartsAfter(pod *v1.Pod, spec *v1.Container, exitCode int32) bool {
	if _, ok := matchingRule(spec, exitCode); ok {
		return true
	}
	switch RestartPolicy(pod, spec) {
	case v1.ContainerRestartPolicyNever:
		return false
	case v1.ContainerRestartPolicyOnFailure:
		return exitCode != 0
	case v1.ContainerRestartPolicyAlways:
	}
	return true
}

// RestartPolicy returns a container's own restart policy, or the pod's.
func RestartPolicy(pod *v1.Pod, spec *v1.Container) v1.ContainerRestartPolicy {
	if spec.RestartPolicy != nil {
		return *spec.RestartPolicy
	}
	return v1.ContainerRestartPolicy(pod.Spec.RestartPolicy)
}

// MayRestart reports whether a container may run again after a failure: by its policy, or by a rule for some exit code.
func MayRestart(pod *v1.Pod, spec *v1.Container) bool {
	return RestartsWhenStopped(pod, spec) || len(spec.RestartPolicyRules) > 0
}

// RestartsWhenStopped decides for a container that is about to be stopped and has no exit code yet. Only its policy
// counts, because rules need an exit code.
func RestartsWhenStopped(pod *v1.Pod, spec *v1.Container) bool {
	return RestartPolicy(pod, spec) != v1.ContainerRestartPolicyNever
}

// SucceededForGood reports whether a container is not started in a new sandbox because it exited with zero and only
// failures are retried.
func (p *Pod) SucceededForGood(ref podspec.ContainerRef) bool {
	c := p.Newest(ref.Name)
	return c != nil && c.State == model.Exited && c.ExitCode == 0 && !p.AwaitsRestart(ref.Name) &&
		RestartPolicy(p.Manifest, ref.Container) == v1.ContainerRestartPolicyOnFailure
}

// InitFailed reports whether an exited init container failed. One that ran out of memory has failed whatever its exit
// code is.
func InitFailed(c *model.Container) bool {
	return c.ExitCode != 0 || OutOfMemory(c)
}

// OutOfMemory reports whether a container was killed because it ran out of memory.
func OutOfMemory(c *model.Container) bool { return c.Reason == "OOMKilled" }

// RestartsAll reports whether the rules of an exited container restart the whole pod (kubelet:
// ShouldAllContainersRestart).
func (p *Pod) RestartsAll() bool {
	return slices.ContainsFunc(Lasting(p.Manifest), func(ref podspec.ContainerRef) bool {
		c := p.Newest(ref.Name)
		return c != nil && c.State == model.Exited && TriggersRestartAll(ref.Container, c)
	})
}

// TriggersRestartAll reports whether the end of a container restarts all containers.
func TriggersRestartAll(spec *v1.Container, c *model.Container) bool {
	rule, ok := matchingRule(spec, c.ExitCode)
	return ok && rule.Action == v1.ContainerRestartRuleActionRestartAllContainers
}

// Lasting lists init containers, sidecars and regular containers. Debug containers do not affect the life of a pod.
func Lasting(pod *v1.Pod) []podspec.ContainerRef {
	return append(podspec.InitContainers(pod), podspec.RegularContainers(pod)...)
}

// matchingRule returns the first restart rule for the exit code. Rules count only if the container has its own policy.
func matchingRule(spec *v1.Container, exitCode int32) (v1.ContainerRestartRule, bool) {
	if spec.RestartPolicy == nil {
		return v1.ContainerRestartRule{}, false
	}
	for _, rule := range spec.RestartPolicyRules {
		if ruleMatches(rule, exitCode) {
			return rule, true
		}
	}
	return v1.ContainerRestartRule{}, false
}

func ruleMatches(rule v1.ContainerRestartRule, exitCode int32) bool {
	if rule.ExitCodes == nil {
		return false
	}
	named := slices.Contains(rule.ExitCodes.Values, exitCode)
	switch rule.ExitCodes.Operator {
	case v1.ContainerRestartRuleOnExitCodesOpIn:
		return named
	case v1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !named
	}
	return false
}
