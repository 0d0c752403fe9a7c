package housekeeping

import "time"

// chore is a kind of housekeeping task.
type chore int

// The tasks. If several are due at the same time, they run in this order.
const (
	logChore chore = iota
	recordChore
	imageChore
	choreCount
)

// The periods of the kubelet (ContainerLogMonitorInterval, ContainerGCPeriod, ImageGCPeriod).
const (
	logsEach    = 10 * time.Second
	recordsEach = time.Minute
	imagesEach  = 5 * time.Minute
)

// schedule computes when each task is due.
type schedule struct {
	each, due [choreCount]time.Duration
	start     time.Time
}

// newSchedule starts a schedule at now. Images are checked early, because their age counts from the first check.
func newSchedule(now time.Time) *schedule {
	each := [choreCount]time.Duration{logChore: logsEach, recordChore: recordsEach, imageChore: imagesEach}
	due := each
	due[imageChore] = logsEach
	return &schedule{each: each, due: due, start: now}
}

// next returns the next task and its time.
func (s *schedule) next() (chore, time.Time) {
	first := logChore
	for c := range choreCount {
		if s.due[c] < s.due[first] {
			first = c
		}
	}
	return first, s.start.Add(s.due[first])
}

// done records the end of a task. The next run is counted from it, so that a long task leaves time for the others.
func (s *schedule) done(c chore, now time.Time) {
	s.due[c] = now.Sub(s.start) + s.each[c]
}
