package plan

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// judgement is what is known of one probe of one running container.
type judgement struct {
	result model.ProbeResult
	// found tells that the probe has been asked at all.
	found bool
	// stale tells that a failure is too old to act on.
	stale   bool
	message string
	age     string
}

// judge looks up the verdict of a probe. A container without that probe, or
// whose probe was never asked, is unknown.
func (v *view) judge(spec *v1.Container, c *model.Container, t model.ProbeType) judgement {
	p := model.ProbeOf(spec, t)
	record, ok := v.probe(c, t)
	if p == nil || !ok {
		return judgement{result: model.ProbeUnknown}
	}
	j := judgement{result: record.Result, found: true}
	if record.Result == model.ProbeFailure {
		j.stale = record.Stale(p, v.now)
		j.age = v.ago(record.CountedAt)
		j.message = failureText(t, record)
	}
	return j
}

func failureText(t model.ProbeType, record model.ProbeRecord) string {
	text := string(t) + " probe failed"
	if record.Message != "" {
		text += ": " + record.Message
	}
	return text
}

// holdStale notes a failure that is not acted on because nobody has confirmed
// it for longer than the probe needs to fail.
func (d *decision) holdStale(ref podspec.ContainerRef, j judgement) {
	d.holds = append(d.holds, Hold{
		Container: ref.Name,
		Reason:    model.ProbeStale,
		Message:   fmt.Sprintf("%s, but that was %s; probe again", j.message, j.age),
	})
}

// backoffHold tells whether CrashLoopBackOff holds the start of a container
// (kubelet: doBackOff). The delay counts from the end of its newest run.
func (v *view) backoffHold(s start) (Hold, bool) {
	exited := v.newestExited(s.ref.Name)
	if exited == nil || s.fresh || v.opts.IgnoreBackoff || v.restartRequested(s.ref) {
		return Hold{}, false
	}
	backoff, estimated := v.backoff(s.ref, exited)
	doubt := map[bool]string{true: ", at least (estimated from the runtime's records)"}
	until := backoff.Until(exited.FinishedAt)
	if until.IsZero() || !v.now.Before(until) || model.AheadOf(v.now, exited.FinishedAt) {
		return Hold{}, false
	}
	return Hold{
		Container: s.ref.Name,
		Reason:    model.CrashLoopBackOff,
		Until:     &until,
		Estimated: estimated,
		Message:   holdText(backoff, exited) + doubt[estimated],
	}, true
}

func holdText(b model.Backoff, exited *model.Container) string {
	return fmt.Sprintf("back-off %s, exit code %d", b.Duration, exited.ExitCode)
}

// backoff is the delay of a container: podctl's record of it, or an estimate.
func (v *view) backoff(ref podspec.ContainerRef, exited *model.Container) (model.Backoff, bool) {
	if v.obs.Memory.Backoffs == nil {
		return v.estimateBackoff(ref.Name, exited), true
	}
	b := v.obs.Memory.Backoffs[ref.Name]
	if b.Key != "" && podspec.Compare(b.Key, v.desired.ContainerSpecHash(ref.Container)) == podspec.Different {
		return model.Backoff{}, false
	}
	return b, false
}

// estimateBackoff replays the restarts the runtime still has records of. What
// happened before the oldest of them is not known, so the shortest delay it can
// have left is assumed: the estimate is never longer than the truth.
func (v *view) estimateBackoff(name string, newest *model.Container) model.Backoff {
	history := v.history(name, newest)
	var b model.Backoff
	for i, c := range history {
		switch {
		case i > 0:
			b = b.Advance(history[i-1].FinishedAt, c.StartedAt)
		case c.RestartCount > 0:
			b = model.Backoff{Duration: model.BackoffInitial, LastUpdate: c.StartedAt}
		}
	}
	return b
}

// history is the unbroken run of records up to the newest, oldest first.
func (v *view) history(name string, newest *model.Container) []*model.Container {
	history := []*model.Container{newest}
	for _, c := range v.containers {
		if c.Name == name && c.State == model.Exited && c.RestartCount+1 == history[0].RestartCount {
			history = append([]*model.Container{c}, history...)
		}
	}
	return history
}
