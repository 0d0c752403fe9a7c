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
	// record is what the answers came to, since is from when on it has its result.
	record model.ProbeRecord
	since  time.Time
	// kept is what the checkpoint has, known whether it has a record at all.
	kept  model.ProbeRecord
	known bool
	// due is when to ask, asked when it was asked last.
	due, asked time.Time
	// overtaken reports whether another process got an answer since this one asked.
	overtaken bool
	// told is the last answer that became an event since the verdict changed, toldAt when.
	told   string
	toldAt time.Time
}

// take brings the worker to what a pass has seen: the probe as the manifest has it now, and the
// records of the checkpoint.
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
	// A failure that this pass has seen, without stopping the container, is asked again once it is old, as
	// `podctl probe` does: otherwise the container would stay as it is for ever. One that the pass has not
	// seen is for the next pass, however slow the machine is.
	if records[t].CountedAt.Equal(w.record.CountedAt) {
		w.record = w.record.Reopened(w.probe, now, time.Time{})
	}
}

// learn takes over what the checkpoint has, and reports whether it did: all of it at first, and
// later what another process found out. A time that has not come yet is a clock's that was set
// back.
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
		// Nobody knows what it would have said since.
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

// waitsFor reports whether the answer of an ask counts.
func (w *worker) waitsFor(ask Ask) bool {
	return !w.overtaken && equality.Semantic.DeepEqual(w.probe, ask.Probe)
}

// fold counts an answer that has come now. The agent keeps to the period itself, and what a pass
// asks for counts as it does for the kubelet, so that each answer counts (compare
// model.ProbeRecord.Counts). It reports whether the verdict is another one now.
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

// unkept reports whether the checkpoint is to get the record: the first one, another verdict, one
// that is decided, or the end of a run of answers that another process has begun there.
func (w *worker) unkept() bool {
	if w.record.CountedAt.IsZero() || w.known && w.record.CountedAt.Equal(w.kept.CountedAt) {
		return false
	}
	ended := w.kept.Last != w.kept.Result && w.kept.Run > 0 && w.record.Last != w.kept.Last
	return !w.known || w.record.Result != w.kept.Result || w.record.OnHold || ended
}

// eventEvery is how often at most one probe becomes an event for what it says.
const eventEvery = time.Minute

// tells reports whether an answer becomes an event: with another verdict, and when a probe says
// what it did not say before. A kubelet has an event for each answer that is no success.
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

// report is the state of the worker.
func (w *worker) report(pod model.PodRef, c *container, t model.ProbeType) probe.Report {
	return probe.Report{
		Pod: pod, Container: c.spec.Name, ContainerID: c.id, Type: t, Probe: w.probe, Asked: true, Record: w.record, Known: w.kept,
	}
}

// wait is how long the probe is not due: until its container's initial delay has passed, and its
// period since it was asked last.
func (w *worker) wait(now time.Time, c *container) time.Duration {
	period := time.Duration(0)
	if !w.asked.IsZero() {
		period = max(0, min(periodOf(w.probe), w.asked.Add(periodOf(w.probe)).Sub(now)))
	}
	return max(period, delay(now, c.startedAt, w.probe))
}

// delay is what is left of the initial delay.
func delay(now, startedAt time.Time, p *v1.Probe) time.Duration {
	if model.AheadOf(now, startedAt) {
		return 0
	}
	whole := model.Seconds(p.InitialDelaySeconds)
	return max(0, min(whole, startedAt.Add(whole).Sub(now)))
}

// next is when a probe is asked again that was asked at a moment and has answered now: a whole
// number of periods after it, and not before its answer. A kubelet asks a slow probe at once
// again, and then less than a period later.
func next(asked, now time.Time, period time.Duration) time.Time {
	took := max(now.Sub(asked), 1)
	return asked.Add((took + period - 1) / period * period)
}

func periodOf(p *v1.Probe) time.Duration { return max(model.Seconds(p.PeriodSeconds), time.Second) }
