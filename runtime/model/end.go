package model

// End is the end of a pod that its source is deleting. The pod ends for good, and only its records and logs stay until
// the source has removed it. Then it is deleted.
type End struct {
	Deletion
	// Done is set once no container of the pod runs, and its volumes and its cgroup are removed.
	Done bool `json:"done,omitempty"`
}

// Again returns the mark for another request of an end. Its grace period can only get shorter.
func (e *End) Again(next Deletion) *End {
	if e == nil {
		return &End{Deletion: next}
	}
	return &End{Deletion: *e.Deletion.Again(next), Done: e.Done}
}

// IsTerminal reports whether the pod has reached a terminal phase or was rejected or evicted. The containers of an
// evicted pod may still be stopping.
func (m *Memory) IsTerminal() bool {
	return m.Completion != nil || m.Rejection != nil || m.Eviction != nil
}

// Leaving returns the deletion of the pod that has begun, or the end that comes before it. It returns nil for a pod
// that stays.
func (m *Memory) Leaving() *Deletion {
	if m.Deletion == nil && m.End != nil {
		return &m.End.Deletion
	}
	return m.Deletion
}
