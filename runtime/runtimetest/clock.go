package runtimetest

import (
	"sync"
	"time"
)

// Clock is a clock that stands still until it is moved, or goes with the machine's.
type Clock struct {
	mu   sync.Mutex
	now  time.Time
	wall bool
}

// NewClock starts at a time.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// WallClock is the machine's own time, for tests in which other processes take part.
func WallClock() *Clock { return &Clock{wall: true} }

// Now is the clock's time.
func (c *Clock) Now() time.Time {
	if c.wall {
		return time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
