package housekeeping

import "time"

// chore is one kind of work.
type chore int

// The chores, in the order in which those begin that are due at the same time.
const (
	logChore chore = iota
	recordChore
	imageChore
	choreCount
)

// The kubelet's times (ContainerLogMonitorInterval, ContainerGCPeriod, ImageGCPeriod).
const (
	logsEach    = 10 * time.Second
	recordsEach = time.Minute
	imagesEach  = 5 * time.Minute
)

// schedule knows when each chore is due.
type schedule struct {
	each, due [choreCount]time.Duration
	start     time.Time
}

// newSchedule begins at a time. Images are looked at soon: from then on it is known how old they are.
func newSchedule(now time.Time) *schedule {
	each := [choreCount]time.Duration{logChore: logsEach, recordChore: recordsEach, imageChore: imagesEach}
	due := each
	due[imageChore] = logsEach
	return &schedule{each: each, due: due, start: now}
}

// next is the chore that comes next, and when.
func (s *schedule) next() (chore, time.Time) {
	first := logChore
	for c := range choreCount {
		if s.due[c] < s.due[first] {
			first = c
		}
	}
	return first, s.start.Add(s.due[first])
}

// done takes note of the end of a chore. The next time is counted from it, so that one that takes
// long leaves room for the others.
func (s *schedule) done(c chore, now time.Time) {
	s.due[c] = now.Sub(s.start) + s.each[c]
}
