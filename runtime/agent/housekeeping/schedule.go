package housekeeping

import (
	"context"
	"time"
)

// task is a kind of housekeeping work.
type task int

// The tasks. If several are due at the same time, they run in this order.
const (
	pullTask task = iota
	logTask
	recordTask
	imageTask
	taskCount
)

// The periods of the kubelet (ContainerLogMonitorInterval, ContainerGCPeriod, ImageGCPeriod). Marks of killed pulls are
// looked for as often as full logs, because the runtime may be absent when the agent starts.
const (
	pullsEach   = logsEach
	logsEach    = 10 * time.Second
	recordsEach = time.Minute
	imagesEach  = 5 * time.Minute
)

// properties are what a task does, how often, and for how long at most.
type properties struct {
	each, limit time.Duration
	run         func(*Housekeeper, context.Context) error
}

// properties returns the properties of a task.
func (c task) properties() properties {
	return [taskCount]properties{
		pullTask:   {pullsEach, time.Minute, (*Housekeeper).settlePulls},
		logTask:    {logsEach, time.Minute, (*Housekeeper).rotateLogs},
		recordTask: {recordsEach, 2 * time.Minute, (*Housekeeper).removeRecords},
		imageTask:  {imagesEach, 5 * time.Minute, (*Housekeeper).removeImages},
	}[c]
}

// schedule computes when each task is due.
type schedule struct {
	due   [taskCount]time.Duration
	start time.Time
}

// newSchedule starts a schedule at now. Images are checked early, because their age counts from the first check. Killed
// pulls come first, before another pod may use their images.
func newSchedule(now time.Time) *schedule {
	s := &schedule{start: now}
	for c := range taskCount {
		s.due[c] = c.properties().each
	}
	s.due[imageTask] = logsEach
	s.due[pullTask] = 0
	return s
}

// next returns the next task and its time.
func (s *schedule) next() (task, time.Time) {
	first := pullTask
	for c := range taskCount {
		if s.due[c] < s.due[first] {
			first = c
		}
	}
	return first, s.start.Add(s.due[first])
}

// done records the end of a task. The next run is counted from it, so that a long task leaves time for the others.
func (s *schedule) done(c task, now time.Time) {
	s.due[c] = now.Sub(s.start) + c.properties().each
}
