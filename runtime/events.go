package runtime

import (
	"slices"

	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// PodEvents are the events of one pod, the oldest first.
type PodEvents struct {
	Pod    plan.PodRef
	Events []state.PodEvent
}

// Events lists what podctl noted of pods, also of those that are gone, by pod.
func Events(layout state.Layout) ([]PodEvents, error) {
	histories, err := layout.Histories()
	if err != nil {
		return nil, err
	}
	var all []PodEvents
	for _, h := range histories {
		if len(h.Events) > 0 {
			all = append(all, PodEvents{Pod: h.Pod, Events: h.Events})
		}
	}
	slices.SortFunc(all, func(a, b PodEvents) int {
		return a.Events[len(a.Events)-1].Last.Compare(b.Events[len(b.Events)-1].Last)
	})
	return all, nil
}

// History is what happened to one pod.
func (e *Engine) History(ref plan.PodRef) (*state.History, error) {
	return e.layout.Pod(ref.UID).ReadHistory()
}
