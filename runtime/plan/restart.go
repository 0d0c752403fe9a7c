package plan

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// restartWanted decides whether a container whose record is c shall run again:
// its own restart rules first, then its own policy, then the pod's (kubelet:
// ShouldContainerBeRestarted).
func restartWanted(pod *v1.Pod, spec *v1.Container, c *model.Container) bool {
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
	if spec.RestartPolicy == nil {
		return policyWants(v1.ContainerRestartPolicy(pod.Spec.RestartPolicy), exitCode)
	}
	if _, ok := matchingRule(spec, exitCode); ok {
		return true
	}
	return policyWants(*spec.RestartPolicy, exitCode)
}

func policyWants(policy v1.ContainerRestartPolicy, exitCode int32) bool {
	switch policy {
	case v1.ContainerRestartPolicyNever:
		return false
	case v1.ContainerRestartPolicyOnFailure:
		return exitCode != 0
	case v1.ContainerRestartPolicyAlways:
	}
	return true
}

// MayRestart tells whether a container may run again after it has failed: by its policy,
// or by a rule for some exit code.
func MayRestart(pod *v1.Pod, spec *v1.Container) bool {
	return mayRestart(pod, spec) || len(spec.RestartPolicyRules) > 0
}

// mayRestart decides for a container that has no exit code yet, because it is
// about to be stopped: only its policy counts, rules need an exit code.
func mayRestart(pod *v1.Pod, spec *v1.Container) bool {
	if spec.RestartPolicy != nil {
		return *spec.RestartPolicy != v1.ContainerRestartPolicyNever
	}
	return pod.Spec.RestartPolicy != v1.RestartPolicyNever
}

// matchingRule returns the first restart rule that names the exit code.
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

// succeededOnce tells that a container has done its work for good and is not
// started in a new sandbox: it ended with zero and only failures are retried.
func (v *view) succeededOnce(ref podspec.ContainerRef) bool {
	once := v.pod.Spec.RestartPolicy == v1.RestartPolicyOnFailure
	if ref.RestartPolicy != nil {
		once = *ref.RestartPolicy == v1.ContainerRestartPolicyOnFailure
	}
	c := v.newest(ref.Name)
	return once && c != nil && c.State == model.Exited && c.ExitCode == 0 && !v.awaitsRestart(ref.Name)
}

// startAgain is the start of a container that has ended.
func (v *view) startAgain(ref podspec.ContainerRef) start {
	c := v.newest(ref.Name)
	s := start{ref: ref, reason: model.ContainerExited, message: exitText(v, c)}
	if c.SandboxID != v.active {
		s.reason, s.message = model.SandboxReplaced, "its sandbox was replaced"
	}
	s.fresh, s.diff = v.editedSince(ref.Container, c)
	return s
}

// editedSince tells whether the manifest of a container that has ended is known to
// be another now. A record without a readable hash shows nothing of the kind.
func (v *view) editedSince(spec *v1.Container, c *model.Container) (bool, difference) {
	if c.Hash == "" && c.SpecHash == "" {
		return false, difference{}
	}
	return v.definitionChanged(spec, c)
}

// startAnew is the start of a container in a new sandbox.
func (v *view) startAnew(ref podspec.ContainerRef) start {
	c := v.newest(ref.Name)
	if c == nil {
		return start{ref: ref, reason: model.NotCreated, message: "not created yet"}
	}
	s := start{ref: ref, reason: model.SandboxReplaced, message: "its sandbox is replaced"}
	s.fresh, s.diff = v.editedSince(ref.Container, c)
	return s
}

// exitText says how a container ended: "exited 1 20s ago: Error".
func exitText(v *view, c *model.Container) string {
	text := fmt.Sprintf("exited %d %s", c.ExitCode, v.ago(c.FinishedAt))
	if c.Reason != "" && c.Reason != "Completed" && c.Reason != "Error" {
		text += ": " + c.Reason
	}
	return text
}

const restartText = "a restart was asked for"

// restartRequested tells that the user wants a container started anew.
func (v *view) restartRequested(ref podspec.ContainerRef) bool {
	return slices.Contains(v.opts.Restart, ref.Name)
}
