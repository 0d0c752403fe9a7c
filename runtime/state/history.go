package state

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
)

// History records a pod's events in the kubelet's terms, the decisions of its passes, and the durations of its start
// steps. It outlives the pod until `podctl prune`. Losing it changes only what can be shown.
type History struct {
	Version int          `json:"version"`
	Pod     model.PodRef `json:"pod"`
	// Owner is the workload that created the pod; nil for a standalone pod.
	Owner  *Owner     `json:"owner,omitempty"`
	Events []PodEvent `json:"events,omitempty"`
	// Spans holds the steps since the pod's sandbox was created, in the order in which they ended.
	Spans []Span `json:"spans,omitempty"`
	// Decisions holds steps, holds and drift of passes, with the plan's reasons. The newest is the last.
	Decisions []Decision `json:"decisions,omitempty"`
}

// Owner names the workload that created a pod, in the pod's namespace.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Redact removes values of Secrets from the messages.
func (h *History) Redact(r *redaction.Redactor) {
	for i := range h.Events {
		h.Events[i].Message = r.Text(h.Events[i].Message)
	}
	for i := range h.Decisions {
		h.Decisions[i].Redact(r)
	}
}

// EventType is the severity of an event.
type EventType string

// Types of events, as in the API.
const (
	Normal  EventType = "Normal"
	Warning EventType = "Warning"
)

// PodEvent is an event and how often it occurred.
type PodEvent struct {
	Type EventType `json:"type"`
	// Reason is the kubelet's reason: Pulled, Created, Started, Killing, BackOff and so on.
	Reason string `json:"reason"`
	// Container is the container concerned; empty for the pod.
	Container string `json:"container,omitempty"`
	Message   string `json:"message"`
	// Annotations are those of the event in the API server.
	Annotations map[string]string `json:"annotations,omitempty"`
	Count       int               `json:"count"`
	First       time.Time         `json:"firstTimestamp"`
	Last        time.Time         `json:"lastTimestamp"`
}

// Span is one step of a pod's start, or a moment if Begin and End are equal.
type Span struct {
	// Kind is the kind of the step, or Ready or Started for a probe that passed.
	Kind   string    `json:"kind"`
	Object string    `json:"object,omitempty"`
	Begin  time.Time `json:"begin"`
	End    time.Time `json:"end"`
	Failed bool      `json:"failed,omitempty"`
}

// Kinds of decisions that are not steps.
const (
	// Held is a decision to do nothing now, although something should be done.
	Held = "Hold"
	// Drift is a change outside podctl that a pass found before it did its steps.
	Drift = "Drift"
)

// Decision is a step of a pass, a hold or a drift, with the reason in the plan. It complements the events, because a
// kubelet's text often has no reason.
type Decision struct {
	// Kind is the kind of the step, Held or Drift.
	Kind string `json:"kind"`
	// Container is empty for the pod.
	Container string `json:"container,omitempty"`
	// Attempt is the attempt that a step created.
	Attempt uint32       `json:"attempt,omitempty"`
	Reason  model.Reason `json:"reason"`
	Message string       `json:"message"`
	// Error is why the step failed; empty if it did not.
	Error string    `json:"error,omitempty"`
	Count int       `json:"count"`
	First time.Time `json:"firstTimestamp"`
	Last  time.Time `json:"lastTimestamp"`
}

// Redact removes values of Secrets from the texts.
func (d *Decision) Redact(r *redaction.Redactor) {
	d.Message, d.Error = r.Text(d.Message), r.Text(d.Error)
}

// cut shortens the texts to what a history keeps.
func (d *Decision) cut() { d.Message, d.Error = cut(d.Message), cut(d.Error) }

// repeats reports whether a decision is the same as an earlier one, for another attempt.
func (d *Decision) repeats(old *Decision) bool {
	return d.Kind == old.Kind && d.Container == old.Container && d.Reason == old.Reason &&
		equivalent(d.Message, old.Message) && equivalent(d.Error, old.Error)
}

// Limits of a history: bytes of its file, events, spans, decisions, and bytes of a message (core/v1: an event's message
// has at most 1024).
const (
	historyVersion = 1
	historyMax     = 4 << 20
	eventsMax      = 200
	spansMax       = 200
	decisionsMax   = 100
	messageMax     = 1024
)

// cut shortens a text to what a history keeps.
func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), messageMax)], "") }

// Decide adds a decision. A repeated one is counted and moved to the end.
func (h *History) Decide(d Decision) {
	d.cut()
	d.Count, d.First = 1, d.Last
	if i := slices.IndexFunc(h.Decisions, func(old Decision) bool { return d.repeats(&old) }); i >= 0 {
		d.Count, d.First = h.Decisions[i].Count+1, h.Decisions[i].First
		h.Decisions = slices.Delete(h.Decisions, i, i+1)
	}
	h.Decisions = append(h.Decisions, d)
	h.Decisions = h.Decisions[max(0, len(h.Decisions)-decisionsMax):]
}

// DecidedSince reports whether the history has an equal decision at or after a time.
func (h *History) DecidedSince(since time.Time, d Decision) bool {
	d.cut()
	return slices.ContainsFunc(h.Decisions, func(old Decision) bool {
		return d.repeats(&old) && !old.Last.Before(since)
	})
}

// Add adds events. For an event that already occurred it increases the count and moves it to the end.
func (h *History) Add(events ...PodEvent) {
	for _, e := range events {
		// Cut the message as it will be read back, because otherwise it never matches the stored one.
		e.Message = cut(e.Message)
		e.Count, e.First = 1, e.Last
		if i := slices.IndexFunc(h.Events, func(old PodEvent) bool { return sameEvent(&old, &e) }); i >= 0 {
			e.Count, e.First = h.Events[i].Count+1, h.Events[i].First
			h.Events = slices.Delete(h.Events, i, i+1)
		}
		h.Events = append(h.Events, e)
	}
	h.Events = h.Events[max(0, len(h.Events)-eventsMax):]
}

// HasSince reports whether the history has an equal event at or after a time.
func (h *History) HasSince(since time.Time, e PodEvent) bool {
	e.Message = cut(e.Message)
	return slices.ContainsFunc(h.Events, func(old PodEvent) bool {
		return sameEvent(&old, &e) && !old.Last.Before(since)
	})
}

func sameEvent(a, b *PodEvent) bool {
	return a.Type == b.Type && a.Reason == b.Reason && a.Container == b.Container && equivalent(a.Message, b.Message)
}

// spanSandbox is the kind of the step that creates a sandbox.
const spanSandbox = "RunSandbox"

// passing matches the parts that differ in otherwise equal messages: the id of one run of a command, and the time since
// something happened.
//
//nolint:gochecknoglobals // compiled once, when it is needed
var passing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`exec "[0-9a-f]{64}"|\S+ ago`)
})

func equivalent(a, b string) bool {
	return a == b || passing().ReplaceAllString(a, "") == passing().ReplaceAllString(b, "")
}

// Mark adds spans. A new sandbox discards the spans of the previous start.
func (h *History) Mark(spans ...Span) {
	for _, s := range spans {
		if s.Kind == spanSandbox {
			// Earlier steps of this pass belong to the start, for example a pull.
			h.Spans = slices.DeleteFunc(h.Spans, func(old Span) bool { return !old.End.After(s.Begin) })
		}
		h.Spans = append(h.Spans, s)
	}
	for len(h.Spans) > spansMax {
		i := h.oldestRepeat()
		h.Spans = slices.Delete(h.Spans, i, i+1)
	}
}

// oldestRepeat returns the index of a span to drop: restarts must not displace the spans of the start before them.
func (h *History) oldestRepeat() int {
	type name struct {
		kind, object string
		failed       bool
	}
	seen := map[name]bool{}
	for i, s := range h.Spans {
		n := name{s.Kind, s.Object, s.Failed}
		if seen[n] {
			return i
		}
		seen[n] = true
	}
	return 0
}
