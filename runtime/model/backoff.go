package model

import (
	"time"
)

// The CrashLoopBackOff of the kubelet: MaxContainerBackOff and its reset.
const (
	BackoffInitial = 10 * time.Second
	backoffMax     = 300 * time.Second
	// backoffReset is how long a container must have run since its start for the
	// delay to begin anew: twice the longest delay (flowcontrol.Backoff).
	backoffReset = 2 * backoffMax
)

// clockSlack is how much later than now a moment may lie that has passed: clocks of
// two looks differ a little.
const clockSlack = time.Minute

// AheadOf reports whether a moment which has passed lies in the future: the clock was set
// back since, and nobody knows how long ago it was. Nothing is held because of it.
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
	// Duration is counted from the end of the container's last run.
	Duration time.Duration `json:"duration"`
	// LastUpdate is when the container was started last.
	LastUpdate time.Time `json:"lastUpdate"`
	// Key is the definition the delay belongs to: another definition starts
	// without delay. Empty: it belongs to any.
	Key string `json:"key,omitempty"`
}

// expired reports whether the run which ended at that time was long enough for the
// delay to begin anew.
func (b Backoff) expired(finished time.Time) bool {
	return b.Duration == 0 || finished.Sub(b.LastUpdate) > backoffReset
}

// Until returns when a container whose last run ended at finished may start
// again; the zero time when it may start at once (kubelet: doBackOff).
func (b Backoff) Until(finished time.Time) time.Time {
	if b.expired(finished) {
		return time.Time{}
	}
	return finished.Add(b.Duration)
}

// Advance is the delay after a restart at now of a container whose last run
// ended at finished: ten seconds at first, doubled each time, five minutes at
// most.
func (b Backoff) Advance(finished, now time.Time) Backoff {
	next := Backoff{Duration: BackoffInitial, LastUpdate: now, Key: b.Key}
	if !b.expired(finished) {
		next.Duration = min(2*b.Duration, backoffMax)
	}
	return next
}
