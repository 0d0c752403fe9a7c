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

// reporter passes on what happens in a pass: to the caller, and to the pod's events. It
// passes on one event at a time, without values of Secrets.
type reporter struct {
	pod  model.PodRef
	plan *plan.Plan
	// manifest is the pod as it shall be; nil when it shall go.
	manifest *v1.Pod
	now      func() time.Time
	redactor *redaction.Redactor
	// warnings are those of the Options.
	warnings []PodWarning
	// notify is the caller's; it may be nil.
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

// warn reports something that went wrong without failing a step.
func (r *reporter) warn(text string) {
	r.event(Event{Kind: Warning, Time: r.now(), Detail: text})
}

// progress reports how far a step is that takes its time.
func (r *reporter) progress(s *plan.Step, text string) { r.progressEvent(s, Event{Detail: text}) }

// killedAt reports until when a container that was asked to end has time.
func (r *reporter) killedAt(s *plan.Step, left int64) {
	r.progressEvent(s, Event{Detail: fmt.Sprintf("asked to end, killed after %ds", left), Until: r.now().Add(model.Seconds(left))})
}

// pulled reports how far a pull is.
func (r *reporter) pulled(s *plan.Step, p images.PullProgress) {
	r.progressEvent(s, Event{Bytes: p.Done, TotalBytes: p.Total})
}

func (r *reporter) progressEvent(s *plan.Step, ev Event) {
	if s != nil {
		ev.Kind, ev.Step, ev.Time = StepProgress, s, r.now()
		r.event(ev)
	}
}

// record adds a warning to the pod's events, and tells the caller nothing.
func (r *reporter) record(reason, container, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorder.Warning(r.now(), reason, container, text)
}

// recordBy lets somebody else add to the pod's events.
func (r *reporter) recordBy(add func(*events.Recorder) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return add(&r.recorder)
}

// pullPaused records that an image is not tried again for a while (kubelet: imageManager.EnsureImageExists).
func (r *reporter) pullPaused(container, image string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	recordPullPause(&r.recorder, r.now(), container, image)
}

// write writes down what happened in the pass. A pass does not fail for it.
func (r *reporter) write(pod state.Pod) {
	r.mu.Lock()
	recordPlan(&r.recorder, r.now(), r.plan)
	for _, w := range r.warnings {
		r.recorder.WarningOnce(r.now(), w.Since, w.Reason, "", w.Text)
	}
	err := r.recorder.Write(pod, r.pod, r.redactor)
	r.mu.Unlock()
	if err != nil {
		r.warn(err.Error())
	}
}
