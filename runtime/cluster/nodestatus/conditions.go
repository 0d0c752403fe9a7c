package nodestatus

import (
	"errors"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// wording is what a condition of pressure has and sends: the reason and the message of its status, and the reason of
// the event when it begins or ends.
type wording struct {
	condition      v1.NodeConditionType
	pressed, other words
}

type words struct{ reason, message, event string }

// pressures returns the conditions of pressure in a kubelet's words and order.
func pressures() []wording {
	return []wording{
		{v1.NodeMemoryPressure, words{
			"KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory",
		}, words{
			"KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory",
		}},
		{v1.NodeDiskPressure, words{
			"KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure",
		}, words{
			"KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure",
		}},
		{v1.NodePIDPressure, words{
			"KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID",
		}, words{
			"KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID",
		}},
	}
}

// setConditions sets the conditions of the node. The condition Ready comes last in a new list. The time of a transition
// changes only with the status of the condition.
func setConditions(status *v1.NodeStatus, f *Facts) {
	for _, p := range pressures() {
		if before := conditionOf(status, p.condition); before != nil && f.Pressures == nil {
			before.LastHeartbeatTime = metav1.NewTime(f.Now)
			continue
		}
		next := v1.NodeCondition{Type: p.condition, Status: v1.ConditionFalse}
		words := p.other
		if slices.Contains(f.Pressures, p.condition) {
			next.Status, words = v1.ConditionTrue, p.pressed
		}
		next.Reason, next.Message = words.reason, words.message
		setCondition(status, next, f)
	}
	setCondition(status, ready(status, f), f)
}

// ready returns the condition Ready (kubelet: ReadyCondition).
func ready(status *v1.NodeStatus, f *Facts) v1.NodeCondition {
	causes := make([]error, 0, len(f.Causes)+1)
	for _, cause := range f.Causes {
		causes = append(causes, errors.New(cause))
	}
	var missing []string
	for _, name := range []v1.ResourceName{
		v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods, v1.ResourceEphemeralStorage,
	} {
		if _, found := status.Capacity[name]; !found {
			missing = append(missing, string(name))
		}
	}
	if len(missing) > 0 {
		causes = append(causes, errors.New("missing node capacity for resources: "+strings.Join(missing, ", ")))
	}
	if err := utilerrors.NewAggregate(causes); err != nil {
		return v1.NodeCondition{
			Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "KubeletNotReady", Message: err.Error(),
		}
	}
	return v1.NodeCondition{
		Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady",
		Message: "kubelet is posting ready status",
	}
}

func setCondition(status *v1.NodeStatus, next v1.NodeCondition, f *Facts) {
	next.LastHeartbeatTime = metav1.NewTime(f.Now)
	next.LastTransitionTime = next.LastHeartbeatTime
	before := conditionOf(status, next.Type)
	if before == nil {
		status.Conditions = append(status.Conditions, next)
		return
	}
	if before.Status == next.Status {
		next.LastTransitionTime = before.LastTransitionTime
	}
	*before = next
}

// conditionOf returns a condition of a status; nil if there is none.
func conditionOf(status *v1.NodeStatus, kind v1.NodeConditionType) *v1.NodeCondition {
	i := slices.IndexFunc(status.Conditions, func(c v1.NodeCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &status.Conditions[i]
}

// statusOf returns the status of a condition; empty if there is none.
func statusOf(node *v1.Node, kind v1.NodeConditionType) v1.ConditionStatus {
	if c := conditionOf(&node.Status, kind); c != nil {
		return c.Status
	}
	return ""
}
