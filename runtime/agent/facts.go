package agent

import (
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
)

// NodeFacts are what an agent knows about its node.
type NodeFacts struct {
	// Pressures are the pressure conditions that eviction has found last. They are nil before the first measurement.
	// Without eviction there are none.
	Pressures []v1.NodeConditionType
	// ShuttingDown is set while all pods are stopped, or have been, because the machine shuts down or the agent ends
	// with Settings.StopPods.
	ShuttingDown bool
	// RelistedAt is when the records of the runtime were last listed completely. It is zero before the first time.
	RelistedAt time.Time
}

// nodeFacts hold the facts. Any goroutine may read and write them.
type nodeFacts struct {
	pressures atomic.Pointer[[]v1.NodeConditionType]
	relisted  atomic.Pointer[time.Time]
	shutdown  atomic.Bool
}

// NodeFacts returns the present facts. It never blocks, and is safe for concurrent use.
func (s *loopState) NodeFacts() (f NodeFacts) {
	if last := s.facts.pressures.Load(); last != nil {
		f.Pressures = *last
	}
	if last := s.facts.relisted.Load(); last != nil {
		f.RelistedAt = *last
	}
	f.ShuttingDown = s.facts.shutdown.Load()
	return f
}

// noteShutdown notes that a shutdown has begun or ended.
func (s *podStopper) noteShutdown() {
	s.facts.shutdown.Store(s.shutdown != nil)
	s.notifyFacts()
}

func (s *loopState) notifyFacts() {
	if s.settings.FactsChanged != nil {
		s.settings.FactsChanged()
	}
}
