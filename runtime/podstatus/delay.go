package podstatus

import (
	"fmt"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
)

// Delay is an active restart delay.
type Delay struct {
	Duration time.Duration
	Until    time.Time
	// ExitCode is the exit code of the run whose end starts the delay.
	ExitCode int32
	// Cause explains that end, if more is known than the exit code: the last start failed, or the runtime gives a
	// reason.
	Cause string
	// Estimated reports whether the delay is estimated from the runtime's records.
	Estimated bool
}

// String returns the length and cause of the delay.
func (d Delay) String() string {
	text := fmt.Sprintf("%s, exit code %s", d.Duration, model.ExitText(d.ExitCode))
	if d.Cause != "" {
		text = fmt.Sprintf("%s, exit code %d, %s", d.Duration, d.ExitCode, d.Cause)
	}
	if d.Estimated {
		text += ", at least (estimated from the runtime's records)"
	}
	return text
}

// Delay returns the delay of a container's next start (kubelet: doBackOff), counted from the end of its newest run;
// false if there is none.
func (p *Pod) Delay(ref podspec.ContainerRef) (Delay, bool) {
	exited := p.NewestExited(ref.Name)
	if exited == nil || p.noBackoff {
		return Delay{}, false
	}
	backoff, estimated := p.backoff(ref, exited)
	until := backoff.Until(exited.FinishedAt)
	if until.IsZero() || !p.Now.Before(until) || model.AheadOf(p.Now, exited.FinishedAt) {
		return Delay{}, false
	}
	return Delay{
		Duration:  backoff.Duration,
		Until:     until,
		ExitCode:  exited.ExitCode,
		Cause:     p.cause(exited),
		Estimated: estimated,
	}, true
}

// cause returns why a run of a container ended, as far as it is known.
func (p *Pod) cause(exited *model.Container) string {
	if failure, ok := p.Observed.Memory.StartErrors[exited.Name]; ok {
		return failure.Line()
	}
	return ExitReason(exited.Reason, exited.Message)
}

// ExitReason returns in one line why a container ended, if the reason of its record contains more than its exit code;
// otherwise an empty text.
func ExitReason(reason, message string) string {
	switch reason {
	case "", "Error", "Completed":
		return ""
	case "StartError", "ContainerCannotRun":
		// The message is the runtime's. For other reasons it is the container's termination message.
		return model.StartError{Reason: model.Reason(reason), Message: message}.Line()
	}
	return reason
}

// backoff returns the delay of a container: podctl's record of it, or an estimate.
func (p *Pod) backoff(ref podspec.ContainerRef, exited *model.Container) (backoff model.Backoff, estimated bool) {
	if p.Observed.Memory.Backoffs == nil {
		return estimate(history(p.Containers, exited)), true
	}
	b := p.Observed.Memory.Backoffs[ref.Name]
	if b.Key != "" && digest.Compare(b.Key, spechash.Container(p.Desired, ref.Container)) == digest.Different {
		return model.Backoff{}, false
	}
	return b, false
}

// estimate replays the restarts in the runtime's records. The time before the oldest record is unknown, so estimate
// assumes the shortest possible delay: the result is never longer than the true delay.
func estimate(records []*model.Container) model.Backoff {
	var b model.Backoff
	for i, c := range records {
		switch {
		case i > 0:
			b = b.Advance(records[i-1].FinishedAt, c.StartedAt)
		case c.RestartCount > 0:
			b = model.Backoff{Duration: model.BackoffInitial, LastUpdate: c.StartedAt}
		}
	}
	return b
}

// history returns the unbroken sequence of a container's records up to its newest, oldest first.
func history(newestFirst []*model.Container, newest *model.Container) []*model.Container {
	records := []*model.Container{newest}
	for _, c := range newestFirst {
		if c.Name == newest.Name && c.State == model.Exited && c.RestartCount+1 == records[0].RestartCount {
			records = append([]*model.Container{c}, records...)
		}
	}
	return records
}
