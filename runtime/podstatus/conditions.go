package podstatus

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
)

// conditions returns the pod's conditions, in the order in which the kubelet reports them.
func conditions(p *Pod, s *v1.PodStatus) []v1.PodCondition {
	sandbox := trueCondition(v1.PodReadyToStartContainers)
	if p.SandboxFault() != nil {
		sandbox.Status = v1.ConditionFalse
	}
	ready := containersReady(p.Manifest, s)
	conditions := []v1.PodCondition{
		sandbox,
		initialisedCondition(p.Manifest, s),
		readyCondition(p, ready),
		ready,
		trueCondition(v1.PodScheduled),
	}
	if HasRestartAllRule(p.Manifest) {
		conditions = append(conditions, restartAllCondition(p, s))
	}
	return conditions
}

func trueCondition(t v1.PodConditionType) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: v1.ConditionTrue}
}

func falseCondition(t v1.PodConditionType, reason, message string) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: v1.ConditionFalse, Reason: reason, Message: message}
}

// initialisedCondition is true if all init containers have succeeded and all sidecars have started, or a regular
// container has run.
func initialisedCondition(pod *v1.Pod, s *v1.PodStatus) v1.PodCondition {
	if s.Phase == v1.PodSucceeded {
		return v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue, Reason: "PodCompleted"}
	}
	hasRun := func(c v1.ContainerStatus) bool { return c.State.Running != nil || c.State.Terminated != nil }
	if slices.ContainsFunc(s.ContainerStatuses, hasRun) {
		return trueCondition(v1.PodInitialized)
	}
	var incomplete []string
	for i, ref := range podspec.InitContainers(pod) {
		status := &s.InitContainerStatuses[i]
		done := status.Ready
		if ref.Type == podspec.Sidecar {
			done = ptr.Deref(status.Started, false)
		}
		if !done {
			incomplete = append(incomplete, ref.Name)
		}
	}
	if len(incomplete) > 0 {
		return falseCondition(v1.PodInitialized, "ContainersNotInitialized",
			listing("containers with incomplete status", incomplete))
	}
	return trueCondition(v1.PodInitialized)
}

func listing(text string, names []string) string {
	return fmt.Sprintf("%s: [%s]", text, strings.Join(names, " "))
}

// containersReady is true if every sidecar and regular container is ready.
func containersReady(pod *v1.Pod, s *v1.PodStatus) v1.PodCondition {
	switch s.Phase {
	case v1.PodFailed:
		return falseCondition(v1.ContainersReady, "PodFailed", "")
	case v1.PodSucceeded:
		return falseCondition(v1.ContainersReady, "PodCompleted", "")
	case v1.PodPending, v1.PodRunning, v1.PodUnknown:
	}
	if unready := unready(pod, s); len(unready) > 0 {
		return falseCondition(v1.ContainersReady, "ContainersNotReady",
			listing("containers with unready status", unready))
	}
	return trueCondition(v1.ContainersReady)
}

func unready(pod *v1.Pod, s *v1.PodStatus) []string {
	var unready []string
	for i, ref := range podspec.InitContainers(pod) {
		if ref.Type == podspec.Sidecar && !s.InitContainerStatuses[i].Ready {
			unready = append(unready, ref.Name)
		}
	}
	for _, ref := range podspec.RegularContainers(pod) {
		ready := func(c v1.ContainerStatus) bool { return c.Name == ref.Name && c.Ready }
		if !slices.ContainsFunc(s.ContainerStatuses, ready) {
			unready = append(unready, ref.Name)
		}
	}
	return unready
}

// readyCondition returns the condition Ready. It is Unknown if it depends on readiness gates whose conditions are not
// known on this machine.
func readyCondition(p *Pod, containersReady v1.PodCondition) v1.PodCondition {
	conditions, known := apiConditions(p)
	if known || containersReady.Status != v1.ConditionTrue || len(p.Manifest.Spec.ReadinessGates) == 0 {
		return Ready(p.Manifest, containersReady, conditions)
	}
	return v1.PodCondition{
		Type: v1.PodReady, Status: v1.ConditionUnknown, Reason: "ReadinessGatesUnknown",
		Message: "the conditions of the readiness gates are in the API server, and no agent answers that knows them",
	}
}

// Ready returns the condition Ready: that of ContainersReady, and False if a readiness gate of the pod is not fulfilled
// (kubelet: GeneratePodReadyCondition). The gates refer to conditions that other programs set in the API. Without a
// cluster no program can set one.
func Ready(pod *v1.Pod, containersReady v1.PodCondition, conditions []v1.PodCondition) v1.PodCondition {
	ready := containersReady
	ready.Type = v1.PodReady
	if ready.Status != v1.ConditionTrue || len(pod.Spec.ReadinessGates) == 0 {
		return ready
	}
	var unready []string
	for _, gate := range pod.Spec.ReadinessGates {
		if text := closedGate(gate.ConditionType, conditions); text != "" {
			unready = append(unready, text)
		}
	}
	if len(unready) == 0 {
		return ready
	}
	return falseCondition(v1.PodReady, "ReadinessGatesNotReady", strings.Join(unready, ", "))
}

// closedGate explains why a readiness gate is not fulfilled; empty if it is.
func closedGate(name v1.PodConditionType, conditions []v1.PodCondition) string {
	i := slices.IndexFunc(conditions, func(c v1.PodCondition) bool { return c.Type == name })
	switch {
	case i < 0:
		return fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", name)
	case conditions[i].Status != v1.ConditionTrue:
		return fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", name, conditions[i].Status)
	}
	return ""
}

// HasRestartAllRule reports whether a rule of a container can restart all containers (kubelet:
// AllContainersCouldRestart).
func HasRestartAllRule(pod *v1.Pod) bool {
	return slices.ContainsFunc(Lasting(pod), func(ref podspec.ContainerRef) bool {
		return slices.ContainsFunc(ref.RestartPolicyRules, func(rule v1.ContainerRestartRule) bool {
			return rule.Action == v1.ContainerRestartRuleActionRestartAllContainers
		})
	})
}

// restartAllCondition is true while all containers are about to be restarted. For a finished pod the reason is its end.
func restartAllCondition(p *Pod, s *v1.PodStatus) v1.PodCondition {
	switch {
	case s.Phase == v1.PodFailed:
		return falseCondition(v1.AllContainersRestarting, "PodFailed", "")
	case s.Phase == v1.PodSucceeded:
		return falseCondition(v1.AllContainersRestarting, "PodCompleted", "")
	case !p.RestartsAll():
		return falseCondition(v1.AllContainersRestarting, "", "")
	}
	c := trueCondition(v1.AllContainersRestarting)
	c.Reason, c.Message = "RestartAllContainersStarted", "container exited with restart policy rule"
	return c
}
