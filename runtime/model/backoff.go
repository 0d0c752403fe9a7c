package model

import (
	"time"
)

// The CrashLoopBackOff of the kubelet: MaxContainerBackOff and its reset.
const (
	BackoffInitial = 10 * time.Second
	backoffMax     = 300 * time.Second
	// backoffReset is how long a container must run after its start until the delay is reset: twice the longest delay
	// (flowcontrol.Backoff).
	backoffReset = 2 * backoffMax
)

// clockSlack is how much later than now a past time may be, because the clocks of two observations differ slightly.
const clockSlack = time.Minute

// AheadOf reports whether a past time lies in the future. The clock was then set back, and the time that has passed is
// unknown. Such a time holds nothing.
func AheadOf(now, passed time.Time) bool { return passed.Sub(now) > clockSlack }

// Earlier returns the earlier of two times. The zero time means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Backoff is the restart delay of one container.
type Backoff struct {
	// Duration counts from the end of the container's last run.
	Duration time.Duration `json:"duration"`
	// LastUpdate is when the container was last started.
	LastUpdate time.Time `json:"lastUpdate"`
	// Key is the definition the delay belongs to: another definition starts without delay. Empty matches any
	// definition.
	Key string `json:"key,omitempty"`
}

// expired reports whether the run that ended at finished was long enough to reset the delay.
func (b Backoff) expired(finished time.Time) bool {
	return b.Duration == 0 || finished.Sub(b.LastUpdate) > backoffReset
}

// Until returns when a container whose last run ended at finished may start again; zero if it may start at once
// (kubelet: doBackOff).
func (b Backoff) Until(finished time.Time) time.Time {
	if b.expired(finished) {
		return time.Time{}
	}
	return finished.Add(b.Duration)
}

// Advance returns the delay after a restart at now of a container whose last run ended at finished: ten seconds at
// first, doubled each time, at most five minutes.
func (b Backoff) Advance(finished, now time.Time) Backoff {
	next := Backoff{Duration: BackoffInitial, LastUpdate: now, Key: b.Key}
	if !b.expired(finished) {
		next.Duration = min(2*b.Duration, backoffMax)
	}
	return next
}
