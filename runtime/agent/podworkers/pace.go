package podworkers

import "time"

// Settings are the times of a set of workers. Their zero values are the kubelet's.
type Settings struct {
	// Parallel bounds how many Sync passes run at the same time; zero means no bound. Terminate
	// passes do not count, nor do those that wait for an image.
	Parallel int
	// Resync is how long after a pass without failure a pod is looked at again, RetryAfter how
	// long after one with a failure. Both are made longer by up to a half.
	Resync, RetryAfter time.Duration
	// Jitter is a random number in [0,1).
	Jitter func() float64
}

// The kubelet's times (syncFrequency and backOffPeriod).
const (
	resync     = time.Minute
	retryAfter = 10 * time.Second
)

// As many passes of a pod that did something follow each other at once. After that they are a pause
// apart: a pod that never comes to rest shall not keep the machine busy.
const (
	busyMax   = 5
	busyPause = time.Second
)

// nextLook is when a pod is looked at again if nothing wakes it.
func (s *Settings) nextLook(now time.Time, x *worker, result Result) time.Time {
	var next time.Time
	switch {
	case result.Failed:
		x.busy = 0
		next = s.jittered(now, s.RetryAfter)
	case !result.Pending:
		x.busy = 0
		next = s.jittered(now, s.Resync)
		if result.Recheck > 0 {
			next = earlier(next, s.jittered(now, result.Recheck))
		}
	case x.busy < busyMax:
		x.busy++
		return now
	default:
		next = now.Add(busyPause)
	}
	if !result.Until.IsZero() {
		// Until is a time of the clock on the wall, which may be set. What is left until then is not.
		next = earlier(next, now.Add(result.Until.Sub(now)))
	}
	return next
}

// jittered is a time from now, made longer by up to a half.
func (s *Settings) jittered(now time.Time, after time.Duration) time.Time {
	if s.Jitter == nil {
		return now.Add(after)
	}
	return now.Add(after + time.Duration(s.Jitter()*float64(after)/2))
}

// never is later than any moment that a pod is looked at.
func never() time.Time { return time.Unix(1<<40, 0) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
