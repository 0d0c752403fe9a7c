package events

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Listener is notified of the new events of a pod, without values of Secrets. Each is one occurrence at its time Last.
// A listener must not block, because a pass or a probe calls it.
type Listener func(pod model.PodRef, events []state.PodEvent)

// Recorder collects events with a kubelet's reasons, spans of time and decisions for a pod, until Write adds them to
// the pod's history. It is not safe for concurrent use.
type Recorder struct {
	// Pod is the applied pod, whose workload the history names; nil if it is unknown.
	Pod *podspec.Desired
	// Listen is called with the events that Write adds; it may be nil.
	Listen Listener

	events []state.PodEvent
	spans  []state.Span
	// decisions are those to add, each unless there is an equal one since a time.
	decisions []decided
	// since holds, by index, the time since which an earlier event makes this one redundant.
	since map[int]time.Time
}

// decided is a decision. A zero time since adds it in any case.
type decided struct {
	state.Decision

	since time.Time
}

// Normal records a normal event.
func (r *Recorder) Normal(at time.Time, reason, container, text string) {
	r.events = append(r.events, state.PodEvent{
		Type: state.Normal, Reason: reason, Container: container, Message: text, Last: at,
	})
}

// Warning records a warning.
func (r *Recorder) Warning(at time.Time, reason, container, text string) {
	r.Normal(at, reason, container, text)
	r.events[len(r.events)-1].Type = state.Warning
}

// WarningOnce records a warning, unless it was recorded since a time.
func (r *Recorder) WarningOnce(at, since time.Time, reason, container, text string) {
	r.Warning(at, reason, container, text)
	if r.since == nil {
		r.since = map[int]time.Time{}
	}
	r.since[len(r.events)-1] = since
}

// Evicted records an eviction once.
func (r *Recorder) Evicted(at time.Time, why *model.Eviction, text string) {
	r.WarningOnce(at, why.At, string(why.Reason()), "", text)
	r.events[len(r.events)-1].Annotations = why.Annotations
}

// Span records how long something took.
func (r *Recorder) Span(s state.Span) { r.spans = append(r.spans, s) }

// Decision records what a pass did, and why.
func (r *Recorder) Decision(d state.Decision) {
	r.decisions = append(r.decisions, decided{Decision: d})
}

// DecisionOnce records a decision, unless it was recorded since a time.
func (r *Recorder) DecisionOnce(since time.Time, d state.Decision) {
	r.decisions = append(r.decisions, decided{d, since})
}

// Write adds the records to the pod's history, without values of Secrets. If it fails, only these records are lost. The
// caller holds the pod's lock.
func (r *Recorder) Write(pod state.Pod, ref model.PodRef, redactor *redaction.Redactor) error {
	if len(r.events)+len(r.spans)+len(r.decisions) == 0 {
		return nil
	}
	h, err := pod.History().Read()
	if err != nil {
		return err
	}
	h.Pod = ref
	if r.Pod != nil {
		h.Owner = ownerOf(r.Pod)
	}
	for i := range r.events {
		r.events[i].Message = redactor.Text(r.events[i].Message)
	}
	var news []state.PodEvent
	for i, e := range r.events {
		if since, once := r.since[i]; !once || !h.HasSince(since, e) {
			h.Add(e)
			news = append(news, e)
		}
	}
	if len(news) > 0 && r.Listen != nil {
		r.Listen(ref, news)
	}
	if !r.decide(h, redactor) && len(news)+len(r.spans) == 0 {
		return nil
	}
	h.Mark(r.spans...)
	return pod.History().Write(h)
}

// decide adds the decisions to a history, and reports whether there were new ones.
func (r *Recorder) decide(h *state.History, redactor *redaction.Redactor) (changed bool) {
	for _, d := range r.decisions {
		d.Redact(redactor)
		if d.since.IsZero() || !h.DecidedSince(d.since, d.Decision) {
			h.Decide(d.Decision)
			changed = true
		}
	}
	return changed
}

// ownerOf returns the workload that created a pod. A pod of the API server has none: its owner is an object there, also
// if a workload of podctl has the same name.
func ownerOf(d *podspec.Desired) *state.Owner {
	owner := metav1.GetControllerOf(d.Pod)
	if owner == nil || d.FromCluster() {
		return nil
	}
	return &state.Owner{Kind: owner.Kind, Name: owner.Name}
}
