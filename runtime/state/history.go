package state

import (
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
)

// History is what happened to a pod: events in the kubelet's words, and how long the
// steps of its start took. It outlives the pod, until `podctl prune`. Losing it
// changes nothing but what can be told.
type History struct {
	Version int          `json:"version"`
	Pod     model.PodRef `json:"pod"`
	// Owner is the workload that made the pod; nil for a pod of its own.
	Owner  *Owner     `json:"owner,omitempty"`
	Events []PodEvent `json:"events,omitempty"`
	// Spans are the steps since the pod's sandbox was made, in the order in which they
	// ended.
	Spans []Span `json:"spans,omitempty"`
}

// Owner names the workload that made a pod, in the pod's namespace.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Redact takes values of Secrets out of the messages.
func (h *History) Redact(r *redaction.Redactor) {
	for i := range h.Events {
		h.Events[i].Message = r.Text(h.Events[i].Message)
	}
}

// EventType says whether an event is good news.
type EventType string

// The types of events, as in the API.
const (
	Normal  EventType = "Normal"
	Warning EventType = "Warning"
)

// PodEvent is one thing that happened, and how often.
type PodEvent struct {
	Type EventType `json:"type"`
	// Reason is the kubelet's word: Pulled, Created, Started, Killing, BackOff and so on.
	Reason string `json:"reason"`
	// Container is the one concerned; empty means the pod.
	Container string    `json:"container,omitempty"`
	Message   string    `json:"message"`
	Count     int       `json:"count"`
	First     time.Time `json:"firstTimestamp"`
	Last      time.Time `json:"lastTimestamp"`
}

// Span is one step of a pod's start, or a moment when it has no length.
type Span struct {
	// Kind is the step's, or Ready or Started for a probe that passed.
	Kind   string    `json:"kind"`
	Object string    `json:"object,omitempty"`
	Begin  time.Time `json:"begin"`
	End    time.Time `json:"end"`
	Failed bool      `json:"failed,omitempty"`
}

// A history is bounded: its file in bytes, the events and spans that are kept, and the
// length of a message in bytes (core/v1: an event's message has at most 1024).
const (
	historyVersion = 1
	historyMax     = 4 << 20
	eventsMax      = 200
	spansMax       = 200
	messageMax     = 1024
)

// Add adds events. One that has happened before is counted instead, and comes last.
func (h *History) Add(events ...PodEvent) {
	for _, e := range events {
		// As it is when it was written and read again, or it would never be counted.
		e.Message = strings.ToValidUTF8(e.Message[:min(len(e.Message), messageMax)], "")
		e.Count, e.First = 1, e.Last
		for i, old := range h.Events {
			if sameEvent(&old, &e) {
				e.Count, e.First = old.Count+1, old.First
				h.Events = append(h.Events[:i], h.Events[i+1:]...)
				break
			}
		}
		h.Events = append(h.Events, e)
	}
	h.Events = h.Events[max(0, len(h.Events)-eventsMax):]
}

// ToldSince reports whether an event is in the history that says the same, from a moment on.
func (h *History) ToldSince(since time.Time, e PodEvent) bool {
	for _, old := range h.Events {
		if sameEvent(&old, &e) && !old.Last.Before(since) {
			return true
		}
	}
	return false
}

func sameEvent(a, b *PodEvent) bool {
	return a.Type == b.Type && a.Reason == b.Reason && a.Container == b.Container && sayTheSame(a.Message, b.Message)
}

// spanSandbox is the kind of the span of a sandbox that is made: that of the step.
const spanSandbox = "RunSandbox"

// passing is what differs in messages that say the same: the name of one run of a command,
// and how long ago something was.
var passing = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`exec "[0-9a-f]{64}"|\S+ ago`) }) //nolint:gochecknoglobals // compiled once, when it is needed

func sayTheSame(a, b string) bool {
	return a == b || passing().ReplaceAllString(a, "") == passing().ReplaceAllString(b, "")
}

// Mark adds spans. The start of a sandbox begins anew.
func (h *History) Mark(spans ...Span) {
	for _, s := range spans {
		if s.Kind == spanSandbox {
			kept := h.Spans[:0]
			for _, old := range h.Spans {
				// What this pass did before it, a pull for example, belongs to the start.
				if old.End.After(s.Begin) {
					kept = append(kept, old)
				}
			}
			h.Spans = kept
		}
		h.Spans = append(h.Spans, s)
	}
	for len(h.Spans) > spansMax {
		i := h.oldestRepeat()
		h.Spans = append(h.Spans[:i], h.Spans[i+1:]...)
	}
}

// oldestRepeat is the index of a span that can be spared: restarts must not push out the
// start that they came after.
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
