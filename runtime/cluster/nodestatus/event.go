package nodestatus

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Event is an event of the Node.
type Event struct {
	// Type is Normal or Warning (core/v1).
	Type string
	// Reason and Message are a kubelet's.
	Reason, Message string
}

// starting is the event of the start of the agent (kubelet: BirthCry).
func starting() Event { return Event{v1.EventTypeNormal, "Starting", "Starting kubelet."} }

// ShutdownBegun is the event of a shutdown of the machine that begins (kubelet: nodeshutdown.start).
func ShutdownBegun() Event {
	return Event{v1.EventTypeNormal, "Shutdown", "Shutdown manager detected shutdown event"}
}

// ShutdownCanceled is the event of a shutdown of the machine that is canceled.
func ShutdownCanceled() Event {
	return Event{v1.EventTypeNormal, "Shutdown", "Shutdown manager detected shutdown cancellation"}
}

// statusEvent is an event about the status of the node (kubelet: recordNodeStatusEvent).
func statusEvent(name, reason string) Event {
	return Event{v1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", name, reason)}
}

// eventsOf returns the events of a new status, in a kubelet's order. An event without an earlier condition is that of
// a new Node, which has none about readiness.
func eventsOf(before, now *v1.Node) []Event {
	var all []Event
	if old, boot := before.Status.NodeInfo.BootID, now.Status.NodeInfo.BootID; old != "" && old != boot {
		all = append(all, Event{
			v1.EventTypeWarning, "Rebooted", fmt.Sprintf("Node %s has been rebooted, boot id: %s", now.Name, boot),
		})
	}
	for _, p := range pressures() {
		switch status := statusOf(now, p.condition); {
		case status == statusOf(before, p.condition):
		case status == v1.ConditionTrue:
			all = append(all, statusEvent(now.Name, p.pressed.event))
		default:
			all = append(all, statusEvent(now.Name, p.other.event))
		}
	}
	old, status := statusOf(before, v1.NodeReady), statusOf(now, v1.NodeReady)
	switch {
	case old == "" || old == status:
	case status == v1.ConditionTrue:
		all = append(all, statusEvent(now.Name, "NodeReady"))
	default:
		all = append(all, statusEvent(now.Name, "NodeNotReady"))
	}
	return all
}

// schedulable is the event of a Node that can, or cannot, get new pods from now on.
func schedulable(node *v1.Node) Event {
	if node.Spec.Unschedulable {
		return statusEvent(node.Name, "NodeNotSchedulable")
	}
	return statusEvent(node.Name, "NodeSchedulable")
}
