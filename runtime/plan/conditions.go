package plan

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// conditions are the pod's conditions, in the order in which the kubelet
// reports them. Their transition times are left out: nobody watched.
func (v *view) conditions(s *v1.PodStatus) []v1.PodCondition {
	d := &decision{}
	judgeSandbox(v, d)
	ready := trueCondition(v1.PodReadyToStartContainers)
	if d.createSandbox {
		ready.Status = v1.ConditionFalse
	}
	containersReady := v.containersReady(s)
	conditions := []v1.PodCondition{
		ready,
		v.initialisedCondition(s),
		v.readyCondition(containersReady),
		containersReady,
		trueCondition(v1.PodScheduled),
	}
	if v.hasRestartAllRule() {
		conditions = append(conditions, v.restartAllCondition(s))
	}
	return conditions
}

func trueCondition(t v1.PodConditionType) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: v1.ConditionTrue}
}

func falseCondition(t v1.PodConditionType, reason, message string) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: v1.ConditionFalse, Reason: reason, Message: message}
}

// initialisedCondition: all init containers have ended well and all sidecars
// have started, or a regular container has run.
func (v *view) initialisedCondition(s *v1.PodStatus) v1.PodCondition {
	if s.Phase == v1.PodSucceeded {
		return v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue, Reason: "PodCompleted"}
	}
	if anyHasRun(s.ContainerStatuses) {
		return trueCondition(v1.PodInitialized)
	}
	var incomplete []string
	for i, ref := range podspec.InitContainers(v.pod) {
		status := &s.InitContainerStatuses[i]
		done := status.Ready
		if ref.Type == podspec.Sidecar {
			done = status.Started != nil && *status.Started
		}
		if !done {
			incomplete = append(incomplete, ref.Name)
		}
	}
	if len(incomplete) > 0 {
		return falseCondition(v1.PodInitialized, "ContainersNotInitialized", listing("containers with incomplete status", incomplete))
	}
	return trueCondition(v1.PodInitialized)
}

func anyHasRun(statuses []v1.ContainerStatus) bool {
	for i := range statuses {
		if statuses[i].State.Running != nil || statuses[i].State.Terminated != nil {
			return true
		}
	}
	return false
}

func listing(text string, names []string) string {
	return fmt.Sprintf("%s: [%s]", text, strings.Join(names, " "))
}

// containersReady: every sidecar and regular container is ready.
func (v *view) containersReady(s *v1.PodStatus) v1.PodCondition {
	switch s.Phase {
	case v1.PodFailed:
		return falseCondition(v1.ContainersReady, "PodFailed", "")
	case v1.PodSucceeded:
		return falseCondition(v1.ContainersReady, "PodCompleted", "")
	case v1.PodPending, v1.PodRunning, v1.PodUnknown:
	}
	if unready := v.unready(s); len(unready) > 0 {
		return falseCondition(v1.ContainersReady, "ContainersNotReady", listing("containers with unready status", unready))
	}
	return trueCondition(v1.ContainersReady)
}

func (v *view) unready(s *v1.PodStatus) []string {
	var unready []string
	for i, ref := range podspec.InitContainers(v.pod) {
		if ref.Type == podspec.Sidecar && !s.InitContainerStatuses[i].Ready {
			unready = append(unready, ref.Name)
		}
	}
	for _, ref := range podspec.RegularContainers(v.pod) {
		if !readyIn(s.ContainerStatuses, ref.Name) {
			unready = append(unready, ref.Name)
		}
	}
	return unready
}

func readyIn(statuses []v1.ContainerStatus, name string) bool {
	for i := range statuses {
		if statuses[i].Name == name {
			return statuses[i].Ready
		}
	}
	return false
}

// readyCondition is containersReady and the readiness gates, which nobody can
// fulfil here.
func (v *view) readyCondition(containersReady v1.PodCondition) v1.PodCondition {
	ready := containersReady
	ready.Type = v1.PodReady
	if ready.Status != v1.ConditionTrue || len(v.pod.Spec.ReadinessGates) == 0 {
		return ready
	}
	var missing []string
	for _, gate := range v.pod.Spec.ReadinessGates {
		missing = append(missing, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
	}
	return falseCondition(v1.PodReady, "ReadinessGatesNotReady", strings.Join(missing, ", "))
}

// hasRestartAllRule tells whether some container can ask for a restart of all.
func (v *view) hasRestartAllRule() bool {
	for _, ref := range runsInPod(v.pod) {
		for _, rule := range ref.RestartPolicyRules {
			if rule.Action == v1.ContainerRestartRuleActionRestartAllContainers {
				return true
			}
		}
	}
	return false
}

// restartAllCondition tells whether all containers are about to be restarted. A
// pod that has finished says so as its reason.
func (v *view) restartAllCondition(s *v1.PodStatus) v1.PodCondition {
	switch {
	case s.Phase == v1.PodFailed:
		return falseCondition(v1.AllContainersRestarting, "PodFailed", "")
	case s.Phase == v1.PodSucceeded:
		return falseCondition(v1.AllContainersRestarting, "PodCompleted", "")
	case !v.restartsAll():
		return falseCondition(v1.AllContainersRestarting, "", "")
	}
	c := trueCondition(v1.AllContainersRestarting)
	c.Reason = "RestartAllContainersStarted"
	return c
}
