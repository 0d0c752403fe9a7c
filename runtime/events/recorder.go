package events

import (
	"time"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Recorder collects what happens to a pod, as events with a kubelet's reasons and as spans
// of time, until Write adds them to the pod's history. It is not safe for concurrent use.
type Recorder struct {
	events []state.PodEvent
	spans  []state.Span
}

// Normal records an event that is good news.
func (r *Recorder) Normal(at time.Time, reason, container, text string) {
	r.events = append(r.events, state.PodEvent{Type: state.Normal, Reason: reason, Container: container, Message: text, Last: at})
}

// Warning records an event that is not.
func (r *Recorder) Warning(at time.Time, reason, container, text string) {
	r.events = append(r.events, state.PodEvent{Type: state.Warning, Reason: reason, Container: container, Message: text, Last: at})
}

// Span records how long something took.
func (r *Recorder) Span(s state.Span) { r.spans = append(r.spans, s) }

// Write adds what was recorded to the pod's history, without values of Secrets. When it
// fails, these events are lost and nothing else. The caller holds the pod's lock.
func (r *Recorder) Write(pod state.Pod, ref model.PodRef, redactor *redaction.Redactor) error {
	if len(r.events)+len(r.spans) == 0 {
		return nil
	}
	h, err := pod.History().Read()
	if err != nil {
		return err
	}
	h.Pod = ref
	for i := range r.events {
		r.events[i].Message = redactor.Text(r.events[i].Message)
	}
	if !h.Redacted {
		h.Redact(redactor)
		h.Redacted = true
	}
	h.Add(r.events...)
	h.Mark(r.spans...)
	return pod.History().Write(h)
}
