package apievents

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// queueMax limits the events that wait, as in client-go.
const queueMax = 1000

// queue holds the events that wait, the oldest first. If it is full, the oldest is dropped.
type queue struct{ events []*v1.Event }

// kind identifies similar events. While the API server is unreachable, only the last of them is kept.
type kind struct {
	object       v1.ObjectReference
	Type, reason string
}

func kindOf(e *v1.Event) kind {
	k := kind{object: e.InvolvedObject, Type: e.Type, reason: e.Reason}
	k.object.ResourceVersion = ""
	return k
}

// add adds an event. It reports whether an older one was dropped.
func (q *queue) add(e *v1.Event) (dropped bool) {
	if dropped = len(q.events) >= queueMax; dropped {
		q.events = slices.Delete(q.events, 0, len(q.events)-queueMax+1)
	}
	q.events = append(q.events, e)
	return dropped
}

// take removes and returns the oldest event; nil if there is none.
func (q *queue) take() *v1.Event {
	if len(q.events) == 0 {
		return nil
	}
	first := q.events[0]
	q.events = slices.Delete(q.events, 0, 1)
	return first
}

// keepLast keeps only the last event of each kind.
func (q *queue) keepLast() {
	last := map[kind]*v1.Event{}
	for _, e := range q.events {
		last[kindOf(e)] = e
	}
	q.events = slices.DeleteFunc(q.events, func(e *v1.Event) bool { return last[kindOf(e)] != e })
}
