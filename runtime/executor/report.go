package executor

import (
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// reporter sends events of a pass to the caller and to the pod's events. It sends one event at a time, without the
// values of Secrets.
type reporter struct {
	pod  model.PodRef
	plan *plan.Plan
	// manifest is the desired pod; nil on deletion.
	manifest *v1.Pod
	now      func() time.Time
	redactor *redaction.Redactor
	// warnings are the Warnings of the Options.
	warnings []PodWarning
	// notify is the caller's Report; it may be nil.
	notify func(Event)

	mu       sync.Mutex
	recorder events.Recorder
}

func (r *reporter) event(ev Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ev.Pod, ev.Detail = r.pod, r.redactor.Text(ev.Detail)
	recordStep(&r.recorder, r.plan, r.manifest, &ev)
	if r.notify != nil {
		r.notify(ev)
	}
}

// warn reports a problem that does not fail a step.
func (r *reporter) warn(text string) {
	r.event(Event{Kind: Warning, Time: r.now(), Detail: text})
}

// progress reports the progress of a long step.
func (r *reporter) progress(s *plan.Step, text string) { r.progressEvent(s, Event{Detail: text}) }

// killedAt reports when a container that was asked to stop is killed.
func (r *reporter) killedAt(s *plan.Step, left int64) {
	r.progressEvent(s, Event{
		Detail: fmt.Sprintf("asked to exit, killed after %ds", left),
		Until:  r.now().Add(model.Seconds(left)),
	})
}

// pulled reports the progress of a pull.
func (r *reporter) pulled(s *plan.Step, p images.PullProgress) {
	r.progressEvent(s, Event{Bytes: p.Done, TotalBytes: p.Total})
}

func (r *reporter) progressEvent(s *plan.Step, ev Event) {
	if s != nil {
		ev.Kind, ev.Step, ev.Time = StepProgress, s, r.now()
		r.event(ev)
	}
}

// record adds a warning to the pod's events without notifying the caller.
func (r *reporter) record(reason, container, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorder.Warning(r.now(), reason, container, text)
}

// recordOften is like record for a warning that each pass has. It is recorded at most once a minute.
func (r *reporter) recordOften(reason, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.recorder.WarningOnce(now, now.Add(-holdEventEvery), reason, "", text)
}

// recordBy calls add with the recorder of the pod's events.
func (r *reporter) recordBy(add func(*events.Recorder) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return add(&r.recorder)
}

// pullPaused records that an image is not retried for a while (kubelet: imageManager.EnsureImageExists).
func (r *reporter) pullPaused(container, image string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	recordPullPause(&r.recorder, r.now(), container, image)
}

// write writes the events of the pass. A failure does not fail the pass.
func (r *reporter) write(pod state.Pod) {
	r.mu.Lock()
	recordPlan(&r.recorder, r.now(), r.plan)
	recordHolds(&r.recorder, r.now(), r.plan)
	for _, w := range r.warnings {
		r.recorder.WarningOnce(r.now(), w.Since, w.Reason, "", w.Text)
	}
	err := r.recorder.Write(pod, r.pod, r.redactor)
	r.mu.Unlock()
	if err != nil {
		r.warn(err.Error())
	}
}
