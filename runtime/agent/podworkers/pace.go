package podworkers

import "time"

// Settings configure a set of workers.
type Settings struct {
	// Parallel is the maximum number of Sync passes at the same time. Zero means no limit. Terminate passes and passes
	// that wait for an image do not count.
	Parallel int
	// ByUID reports whether UIDs identify the pods of a source. Such a pod neither waits for its name nor holds it. If
	// nil, every pod has a name of its own.
	ByUID func(source string) bool
	// Jitter returns a random number in [0, 1). If nil, intervals are not extended.
	Jitter func() float64
}

// resync is the time from a successful pass to the next one, and retryAfter the time after a failed pass (kubelet:
// syncFrequency and backOffPeriod). Both are extended randomly by up to a half.
const (
	resync     = time.Minute
	retryAfter = 10 * time.Second
)

// Up to busyMax passes of a pod that made changes follow each other at once. Further ones are busyPause apart, so that
// a pod that never settles does not keep the machine busy.
const (
	busyMax   = 5
	busyPause = time.Second
)

// nextPass returns the time of a pod's next pass if no event comes before.
func (s *Settings) nextPass(now time.Time, x *worker, result Result) time.Time {
	var next time.Time
	switch {
	case result.Failed:
		x.busy = 0
		next = s.jittered(now, retryAfter)
	case !result.Pending:
		x.busy = 0
		next = s.jittered(now, resync)
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
		// Until is a wall-clock time, and the clock may be set. A duration from now is not affected.
		next = earlier(next, now.Add(result.Until.Sub(now)))
	}
	return next
}

// jittered returns the time after a duration that is extended by up to a half.
func (s *Settings) jittered(now time.Time, after time.Duration) time.Time {
	if s.Jitter == nil {
		return now.Add(after)
	}
	return now.Add(after + time.Duration(s.Jitter()*float64(after)/2))
}

// never is later than the time of any pass.
func never() time.Time { return time.Unix(1<<40, 0) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
