package probers

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

// worker is one probe of one run of a container.
type worker struct {
	probe *v1.Probe
	// record is the state computed from the results. since is when its verdict was reached.
	record model.ProbeRecord
	since  time.Time
	// recorded is the record in the checkpoint. hasRecord reports whether there is one.
	recorded  model.ProbeRecord
	hasRecord bool
	// due is the time of the next run. lastRun is the time of the last run.
	due, lastRun time.Time
	// superseded reports whether another process has recorded a result since this probe started.
	superseded bool
	// lastEvent is the last result that became an event since the verdict changed. lastEventAt is its time.
	lastEvent   string
	lastEventAt time.Time
}

// update updates the worker with the probe from the manifest and the records from the checkpoint.
func (w *worker) update(now time.Time, c *container, t model.ProbeType, records map[model.ProbeType]model.ProbeRecord) {
	p := model.ProbeOf(c.spec, t)
	changed := !equality.Semantic.DeepEqual(w.probe, p)
	w.probe = p
	learned := w.adopt(now, records, t)
	due := now.Add(w.wait(now, c))
	switch {
	case changed:
		w.due = due
	case learned:
		w.due = later(w.due, due)
	}
	// If this pass has observed a failure without stopping the container, the failure is checked again once it is old,
	// as `podctl probe` does. Otherwise the container would stay as it is forever. A failure that this pass has not
	// observed is left to the next pass, however slow the machine is.
	if records[t].CountedAt.Equal(w.record.CountedAt) {
		w.record = w.record.Reopened(w.probe, now, time.Time{})
	}
}

// adopt takes over the record in the checkpoint, and reports whether it did. At first it takes any record, and later
// only results of another process. It ignores a time in the future, which comes from a clock that was set back.
func (w *worker) adopt(now time.Time, records map[model.ProbeType]model.ProbeRecord, t model.ProbeType) bool {
	record, ok := records[t]
	others := ok && (!w.hasRecord || !record.CountedAt.Equal(w.recorded.CountedAt))
	w.recorded, w.hasRecord = record, ok
	first := w.record.Result == model.InitialProbe(t).Result && w.record.Last == "" && w.record.CountedAt.IsZero()
	newer := record.CountedAt.After(w.record.CountedAt) && !model.AheadOf(now, record.CountedAt)
	if !others || !first && !newer {
		return false
	}
	if (first || record.Result != w.record.Result) && (record.Last == record.Result || record.OnHold) {
		w.since = record.CountedAt
	}
	w.record, w.superseded = record, true
	if record.Result != record.Last && record.Stale(w.probe, later(now, record.CountedAt), time.Time{}) {
		// Later results are unknown, so the series is not continued.
		w.record.Last, w.record.Run = "", 0
	}
	if !record.CountedAt.After(now) {
		w.lastRun = later(w.lastRun, record.CountedAt)
	}
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// accepts reports whether the result of a run counts.
func (w *worker) accepts(run DueProbe) bool {
	return !w.superseded && equality.Semantic.DeepEqual(w.probe, run.Probe)
}

// fold counts a result. Each result counts, because the agent itself keeps to the period. A run that a pass requests
// counts for the kubelet, too (compare model.ProbeRecord.Counts). fold reports whether the verdict has changed.
func (w *worker) fold(now time.Time, r *probe.Report) (changed bool) {
	r.Counted = true
	r.Fold(w.record, now.Round(0).UTC())
	changed = r.Record.Result != w.record.Result
	w.record = r.Record
	if changed {
		w.since = now
	}
	return changed
}

// isUnrecorded reports whether to write the record to the checkpoint. It is written if it is the first one, has another
// verdict, or is decided. It is also written if it ends a series of results that another process has recorded there.
func (w *worker) isUnrecorded() bool {
	if w.record.CountedAt.IsZero() || w.hasRecord && w.record.CountedAt.Equal(w.recorded.CountedAt) {
		return false
	}
	ended := w.recorded.Last != w.recorded.Result && w.recorded.Run > 0 && w.record.Last != w.recorded.Last
	return !w.hasRecord || w.record.Result != w.recorded.Result || w.record.OnHold || ended
}

// eventEvery is the minimum time between two events for new messages of one probe.
const eventEvery = time.Minute

// isEvent reports whether a result becomes an event: the verdict has changed, or the message is new. A kubelet has an
// event for each result except success.
func (w *worker) isEvent(now time.Time, result probe.Result) bool {
	decides := w.since.Equal(now) || w.record.OnHold
	if result.Verdict == probe.Success {
		if decides {
			w.lastEvent = ""
		}
		return false
	}
	text := string(result.Verdict) + " " + result.Output
	news := text != w.lastEvent && (w.lastEvent == "" || now.Sub(w.lastEventAt) >= eventEvery)
	if !decides && !news {
		return false
	}
	w.lastEvent, w.lastEventAt = text, now
	return true
}

// report returns the state of the worker.
func (w *worker) report(pod model.PodRef, c *container, t model.ProbeType) probe.Report {
	return probe.Report{
		Pod:         pod,
		Container:   c.spec.Name,
		ContainerID: c.id,
		Type:        t,
		Probe:       w.probe,
		Ran:         true,
		Record:      w.record,
		Known:       w.recorded,
	}
}

// wait returns the time until the probe is due: the rest of its container's initial delay, or of its period since the
// last run.
func (w *worker) wait(now time.Time, c *container) time.Duration {
	period := time.Duration(0)
	if !w.lastRun.IsZero() {
		period = max(0, min(periodOf(w.probe), w.lastRun.Add(periodOf(w.probe)).Sub(now)))
	}
	return max(period, delay(now, c.startedAt, w.probe))
}

// delay returns the rest of the initial delay.
func delay(now, startedAt time.Time, p *v1.Probe) time.Duration {
	if model.AheadOf(now, startedAt) {
		return 0
	}
	whole := model.Seconds(p.InitialDelaySeconds)
	return max(0, min(whole, startedAt.Add(whole).Sub(now)))
}

// next returns when a probe that ran from started until now runs again: a whole number of periods after
// started, and not before now. A kubelet runs a slow probe again at once, and then less than a period later.
func next(started, now time.Time, period time.Duration) time.Time {
	took := max(now.Sub(started), 1)
	return started.Add((took + period - 1) / period * period)
}

func periodOf(p *v1.Probe) time.Duration { return max(model.Seconds(p.PeriodSeconds), time.Second) }
