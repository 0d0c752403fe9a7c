package runtimetest

import (
	"sync"
	"time"
)

// Clock is a clock that stands still until it is advanced, or the machine's clock.
type Clock struct {
	mu   sync.Mutex
	now  time.Time
	wall bool
}

// NewClock returns a clock that starts at a time.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// WallClock returns the machine's clock, for tests with other processes.
func WallClock() *Clock { return &Clock{wall: true} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wall {
		return time.Now()
	}
	return c.now
}

// Stop lets the machine's clock stand still from now on, so that a slow machine does not change the result of a test.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wall {
		c.now, c.wall = time.Now(), false
	}
}

// Advance advances the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
