package events

import (
	"slices"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// PodEvents are the events of one pod, the oldest first.
type PodEvents struct {
	Pod model.PodRef
	// Owner is the workload that made the pod; nil for a pod of its own.
	Owner  *state.Owner
	Events []state.PodEvent
}

// Events lists what podctl noted of pods, also of those that are gone, by pod. Those that
// cannot be read hide no others: their errors are returned beside the events.
func Events(layout state.Layout) ([]PodEvents, error) {
	histories, err := layout.Histories().All()
	var all []PodEvents
	for _, h := range histories {
		redact(layout, h)
		if len(h.Events) > 0 {
			all = append(all, PodEvents{Pod: h.Pod, Owner: h.Owner, Events: h.Events})
		}
	}
	slices.SortFunc(all, func(a, b PodEvents) int {
		return a.Events[len(a.Events)-1].Last.Compare(b.Events[len(b.Events)-1].Last)
	})
	return all, err
}

// redact takes values of Secrets out of events that were written before podctl knew them.
func redact(layout state.Layout, h *state.History) {
	if j, err := layout.Pod(h.Pod.UID).Checkpoint().Read(); err == nil && j.KnowsSecrets(nil) {
		h.Redact(j.Redactor(nil))
	}
}

// History is what happened to one pod.
func History(layout state.Layout, ref model.PodRef) (*state.History, error) {
	h, err := layout.Pod(ref.UID).History().Read()
	if err == nil {
		h.Pod.UID = ref.UID
		redact(layout, h)
	}
	return h, err
}
