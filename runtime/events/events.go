package events

import (
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// PodEvents are the events of one pod, the oldest first.
type PodEvents struct {
	Pod model.PodRef
	// Owner is the workload that created the pod; nil if there is none.
	Owner  *state.Owner
	Events []state.PodEvent
}

// Events returns the recorded events by pod, including deleted pods. It skips unreadable histories and returns their
// errors.
func Events(layout state.Layout) ([]PodEvents, error) {
	histories, err := layout.Histories().All()
	var all []PodEvents
	for _, h := range histories {
		redact(layout, h)
		if len(h.Events) > 0 {
			all = append(all, PodEvents{Pod: h.Pod, Owner: h.Owner, Events: h.Events})
		}
	}
	slices.SortStableFunc(all, func(a, b PodEvents) int {
		return a.Events[len(a.Events)-1].Last.Compare(b.Events[len(b.Events)-1].Last)
	})
	return all, err
}

// redact removes values of Secrets from events that were written before podctl knew the values.
func redact(layout state.Layout, h *state.History) {
	if j, err := layout.Pod(h.Pod.UID).Checkpoint().Read(); err == nil && podspec.KnowsSecrets(j.Applied) {
		h.Redact(j.Redactor(nil))
	}
}

// History returns the history of one pod.
func History(layout state.Layout, ref model.PodRef) (*state.History, error) {
	h, err := layout.Pod(ref.UID).History().Read()
	if err == nil {
		h.Pod.UID = ref.UID
		redact(layout, h)
	}
	return h, err
}
