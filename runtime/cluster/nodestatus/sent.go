package nodestatus

import "time"

// Sent has the times of the last successful heartbeats; zero before the first.
type Sent struct{ Status, Lease time.Time }

// Sent returns the times of the last heartbeats. It may be called from any goroutine.
func (m *Manager) Sent() Sent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent
}

// noteSent sets a field of sent to the current time.
func (m *Manager) noteSent(field *time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*field = time.Now()
}
