package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// RestartWanted decides whether a container whose record is c shall run again:
// its own restart rules first, then its own policy, then the pod's (kubelet:
// ShouldContainerBeRestarted).
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
	return restartAfter(pod, spec, c.ExitCode)
}

// restartAfter decides by an exit code alone (kubelet: ContainerShouldRestart).
func restartAfter(pod *v1.Pod, spec *v1.Container, exitCode int32) bool {
	if _, ok := matchingRule(spec, exitCode); ok {
		return true
	}
	switch policyOf(pod, spec) {
	case v1.ContainerRestartPolicyNever:
		return false
	case v1.ContainerRestartPolicyOnFailure:
		return exitCode != 0
	case v1.ContainerRestartPolicyAlways:
	}
	return true
}

// policyOf is a container's own restart policy, or the pod's.
func policyOf(pod *v1.Pod, spec *v1.Container) v1.ContainerRestartPolicy {
	if spec.RestartPolicy != nil {
		return *spec.RestartPolicy
	}
	return v1.ContainerRestartPolicy(pod.Spec.RestartPolicy)
}

// MayRestart reports whether a container may run again after it has failed: by its policy,
// or by a rule for some exit code.
func MayRestart(pod *v1.Pod, spec *v1.Container) bool {
	return RestartsWhenStopped(pod, spec) || len(spec.RestartPolicyRules) > 0
}

// RestartsWhenStopped decides for a container that has no exit code yet, because it is
// about to be stopped: only its policy counts, rules need an exit code.
func RestartsWhenStopped(pod *v1.Pod, spec *v1.Container) bool {
	return policyOf(pod, spec) != v1.ContainerRestartPolicyNever
}

// SucceededForGood reports whether a container has done its work for good and is not
// started in a new sandbox: it ended with zero and only failures are retried.
func (p *Pod) SucceededForGood(ref podspec.ContainerRef) bool {
	c := p.Newest(ref.Name)
	return c != nil && c.State == model.Exited && c.ExitCode == 0 && !p.AwaitsRestart(ref.Name) &&
		policyOf(p.Manifest, ref.Container) == v1.ContainerRestartPolicyOnFailure
}

// InitFailed reports whether an init container that has ended did not do its work. One
// that was killed for its memory has failed whatever its exit code says.
func InitFailed(c *model.Container) bool {
	return c.ExitCode != 0 || OutOfMemory(c)
}

// OutOfMemory reports whether a container was killed for its memory.
func OutOfMemory(c *model.Container) bool { return c.Reason == "OOMKilled" }

// RestartsAll reports whether a container ended in a way for which its rules ask to
// restart the whole pod (kubelet: ShouldAllContainersRestart).
func (p *Pod) RestartsAll() bool {
	return slices.ContainsFunc(Lasting(p.Manifest), func(ref podspec.ContainerRef) bool {
		c := p.Newest(ref.Name)
		return c != nil && c.State == model.Exited && AsksForAll(ref.Container, c)
	})
}

// AsksForAll reports whether the end of a container asks to restart all containers.
func AsksForAll(spec *v1.Container, c *model.Container) bool {
	rule, ok := matchingRule(spec, c.ExitCode)
	return ok && rule.Action == v1.ContainerRestartRuleActionRestartAllContainers
}

// Lasting lists init containers, sidecars and regular containers: all that the pod's
// life depends on.
func Lasting(pod *v1.Pod) []podspec.ContainerRef {
	return append(podspec.InitContainers(pod), podspec.RegularContainers(pod)...)
}

// matchingRule returns the first restart rule that names the exit code. Rules count
// beside a policy of the container's own only.
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
