package nodestatus

import (
	"sync"
	"time"
)

// Sent has the times of the last successful heartbeats; zero before the first.
type Sent struct{ Status, Lease time.Time }

// Sent returns the times of the last heartbeats. It may be called from any goroutine.
func (m *Manager) Sent() Sent { return m.sent.times() }

// sent records heartbeats.
type sent struct {
	mu   sync.Mutex
	last Sent
}

func (s *sent) times() Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *sent) noteStatus() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.Status = time.Now()
}

func (s *sent) noteLease() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.Lease = time.Now()
}
