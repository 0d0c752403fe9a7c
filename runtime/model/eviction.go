package model

import "time"

// Eviction is why a pod was ended to get back what the machine ran out of. Nothing of it is left on the
// node but its record, and it counts for nothing.
type Eviction struct {
	// Message is the kubelet's.
	Message string `json:"message"`
	// Signal is what ran out.
	Signal string `json:"signal"`
	// At is when the pod was evicted.
	At time.Time `json:"at"`
	// Done is set once nothing of the pod is left but its record.
	Done bool `json:"done,omitempty"`
}

// EvictedAnew is what is remembered of an evicted pod that is made anew: as of one that was never there.
func (m *Memory) EvictedAnew() Memory { return Memory{Generation: m.Generation} }

// EndEviction leaves of the memory what holds of a pod of which nothing is there any more.
func (m *Memory) EndEviction() {
	done := *m.Eviction
	done.Done = true
	m.Eviction = &done
	m.StartErrors, m.LastRun, m.PendingRestarts, m.Probes, m.Adopted, m.Actuated = nil, nil, nil, nil, nil, nil
	m.Backoffs = map[string]Backoff{}
}
