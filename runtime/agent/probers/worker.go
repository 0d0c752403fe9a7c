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
	// kept is the record in the checkpoint. known reports whether the checkpoint has one.
	kept  model.ProbeRecord
	known bool
	// due is the time of the next run. asked is the time of the last run.
	due, asked time.Time
	// overtaken reports whether another process has recorded a result since this probe started.
	overtaken bool
	// told is the last result that became an event since the verdict changed. toldAt is its time.
	told   string
	toldAt time.Time
}

// take updates the worker with the probe from the manifest and the records from the checkpoint.
func (w *worker) take(now time.Time, c *container, t model.ProbeType, records map[model.ProbeType]model.ProbeRecord) {
	p := model.ProbeOf(c.spec, t)
	changed := !equality.Semantic.DeepEqual(w.probe, p)
	w.probe = p
	learned := w.learn(now, records, t)
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

// learn takes over the record in the checkpoint, and reports whether it did. At first it takes any record, and later
// only results of another process. It ignores a time in the future, which comes from a clock that was set back.
func (w *worker) learn(now time.Time, records map[model.ProbeType]model.ProbeRecord, t model.ProbeType) bool {
	record, ok := records[t]
	others := ok && (!w.known || !record.CountedAt.Equal(w.kept.CountedAt))
	w.kept, w.known = record, ok
	first := w.record.Result == model.InitialProbe(t).Result && w.record.Last == "" && w.record.CountedAt.IsZero()
	newer := record.CountedAt.After(w.record.CountedAt) && !model.AheadOf(now, record.CountedAt)
	if !others || !first && !newer {
		return false
	}
	if (first || record.Result != w.record.Result) && (record.Last == record.Result || record.OnHold) {
		w.since = record.CountedAt
	}
	w.record, w.overtaken = record, true
	if record.Result != record.Last && record.Stale(w.probe, later(now, record.CountedAt), time.Time{}) {
		// Later results are unknown, so the series is not continued.
		w.record.Last, w.record.Run = "", 0
	}
	if !record.CountedAt.After(now) {
		w.asked = later(w.asked, record.CountedAt)
	}
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// waitsFor reports whether the result of an ask counts.
func (w *worker) waitsFor(ask Ask) bool {
	return !w.overtaken && equality.Semantic.DeepEqual(w.probe, ask.Probe)
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

// unkept reports whether to write the record to the checkpoint. It is written if it is the first one, has another
// verdict, or is decided. It is also written if it ends a series of results that another process has recorded there.
func (w *worker) unkept() bool {
	if w.record.CountedAt.IsZero() || w.known && w.record.CountedAt.Equal(w.kept.CountedAt) {
		return false
	}
	ended := w.kept.Last != w.kept.Result && w.kept.Run > 0 && w.record.Last != w.kept.Last
	return !w.known || w.record.Result != w.kept.Result || w.record.OnHold || ended
}

// eventEvery is the minimum time between two events for new messages of one probe.
const eventEvery = time.Minute

// tells reports whether a result becomes an event: the verdict has changed, or the message is new. A kubelet has an
// event for each result except success.
func (w *worker) tells(now time.Time, result probe.Result) bool {
	decides := w.since.Equal(now) || w.record.OnHold
	if result.Verdict == probe.Success {
		if decides {
			w.told = ""
		}
		return false
	}
	text := string(result.Verdict) + " " + result.Output
	news := text != w.told && (w.told == "" || now.Sub(w.toldAt) >= eventEvery)
	if !decides && !news {
		return false
	}
	w.told, w.toldAt = text, now
	return true
}

// report returns the state of the worker.
func (w *worker) report(pod model.PodRef, c *container, t model.ProbeType) probe.Report {
	return probe.Report{
		Pod: pod, Container: c.spec.Name, ContainerID: c.id, Type: t, Probe: w.probe, Asked: true, Record: w.record, Known: w.kept,
	}
}

// wait returns the time until the probe is due: the rest of its container's initial delay, or of its period since the
// last run.
func (w *worker) wait(now time.Time, c *container) time.Duration {
	period := time.Duration(0)
	if !w.asked.IsZero() {
		period = max(0, min(periodOf(w.probe), w.asked.Add(periodOf(w.probe)).Sub(now)))
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

// next returns when a probe runs again that started at asked and has answered now: a whole number of periods after
// asked, and not before now. A kubelet runs a slow probe again at once, and then less than a period later.
func next(asked, now time.Time, period time.Duration) time.Time {
	took := max(now.Sub(asked), 1)
	return asked.Add((took + period - 1) / period * period)
}

func periodOf(p *v1.Probe) time.Duration { return max(model.Seconds(p.PeriodSeconds), time.Second) }
