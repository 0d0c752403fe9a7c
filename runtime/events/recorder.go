package events

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Recorder collects what happens to a pod, as events with a kubelet's reasons and as spans
// of time, until Write adds them to the pod's history. It is not safe for concurrent use.
type Recorder struct {
	// Pod is the pod as it was applied, whose workload the history names; nil if that is not known.
	Pod *v1.Pod

	events []state.PodEvent
	spans  []state.Span
	// since says of events that are told once how far back they count, by index.
	since map[int]time.Time
}

// Normal records an event that is good news.
func (r *Recorder) Normal(at time.Time, reason, container, text string) {
	r.events = append(r.events, state.PodEvent{Type: state.Normal, Reason: reason, Container: container, Message: text, Last: at})
}

// Warning records an event that is not.
func (r *Recorder) Warning(at time.Time, reason, container, text string) {
	r.events = append(r.events, state.PodEvent{Type: state.Warning, Reason: reason, Container: container, Message: text, Last: at})
}

// WarningOnce records an event that is not good news, unless it was recorded since a moment.
func (r *Recorder) WarningOnce(at, since time.Time, reason, container, text string) {
	r.Warning(at, reason, container, text)
	if r.since == nil {
		r.since = map[int]time.Time{}
	}
	r.since[len(r.events)-1] = since
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
	if r.Pod != nil {
		h.Owner = nil
		if owner := metav1.GetControllerOf(r.Pod); owner != nil {
			h.Owner = &state.Owner{Kind: owner.Kind, Name: owner.Name}
		}
	}
	for i := range r.events {
		r.events[i].Message = redactor.Text(r.events[i].Message)
	}
	news := len(r.spans) > 0
	for i, e := range r.events {
		if since, once := r.since[i]; !once || !h.ToldSince(since, e) {
			h.Add(e)
			news = true
		}
	}
	if !news {
		return nil
	}
	h.Mark(r.spans...)
	return pod.History().Write(h)
}
