package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
)

// History is what happened to a pod: events in the kubelet's words, and how long the
// steps of its start took. It outlives the pod, until `podctl prune`. Losing it
// changes nothing but what can be told.
type History struct {
	Version int          `json:"version"`
	Pod     model.PodRef `json:"pod"`
	Events  []PodEvent   `json:"events,omitempty"`
	// Spans are the steps since the pod's sandbox was made, in the order in which they
	// ended.
	Spans []Span `json:"spans,omitempty"`
	// Redacted tells that all messages were written without Secrets. An older podctl left
	// them in.
	Redacted bool `json:"redacted,omitempty"`
}

// Redact takes values of Secrets out of the messages.
func (h *History) Redact(r *redaction.Redactor) {
	for i := range h.Events {
		h.Events[i].Message = r.Text(h.Events[i].Message)
	}
}

// EventType says whether an event is good news.
type EventType string

// The types of events (core/v1: EventTypeNormal, EventTypeWarning).
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
			if old.Type == e.Type && old.Reason == e.Reason && old.Container == e.Container && sayTheSame(old.Message, e.Message) {
				e.Count, e.First = old.Count+1, old.First
				h.Events = append(h.Events[:i], h.Events[i+1:]...)
				break
			}
		}
		h.Events = append(h.Events, e)
	}
	h.Events = h.Events[max(0, len(h.Events)-eventsMax):]
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

func (l Layout) histories() string { return filepath.Join(l.Root, "events") }

// HistoryFile is where what happened to the pod is kept.
func (p Pod) HistoryFile() string {
	return filepath.Join(p.layout.histories(), string(p.uid)+".json")
}

// unfinishedHistory is a history that is being written.
func (p Pod) unfinishedHistory() string {
	return filepath.Join(p.layout.histories(), "."+string(p.uid))
}

// ReadHistory reads what happened to the pod. One that is missing, damaged or of a
// newer podctl is empty: nothing depends on it.
func (p Pod) ReadHistory() (*History, error) {
	if err := firstError(p.check(), p.layout.check()); err != nil {
		return nil, err
	}
	h := &History{}
	text, err := readRegular(p.HistoryFile(), historyMax)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrDamaged):
		return h, nil
	case err != nil:
		return nil, fmt.Errorf("reading the pod's events: %w", err)
	}
	return decodeHistory(text), nil
}

func decodeHistory(text []byte) *History {
	h := &History{}
	if err := model.DecodeDocument(text, h); err != nil || h.Version != historyVersion {
		return &History{}
	}
	return h
}

// RemoveHistory forgets what happened to the pod. The caller holds the pod's lock.
func (p Pod) RemoveHistory() error {
	if err := firstError(p.check(), p.layout.check(), removeFile(p.HistoryFile())); err != nil {
		return fmt.Errorf("removing the pod's events: %w", err)
	}
	return nil
}

// Histories reads all histories there are, of pods that are gone too. Of one that cannot
// be read the uid is known. One whose reading fails hides no other: its error is returned
// beside them. What lies there under names that no pod has is not podctl's.
func (l Layout) Histories() ([]*History, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	entries, err := entriesOf(l.histories())
	if err != nil {
		return nil, fmt.Errorf("reading events: %w", err)
	}
	var all []*History
	var errs []error
	for _, entry := range entries {
		uid, ok := strings.CutSuffix(entry.Name(), ".json")
		pod := l.Pod(types.UID(uid))
		if !ok || pod.check() != nil {
			continue
		}
		h, err := pod.ReadHistory()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", entry.Name(), err))
			continue
		}
		// The file is the pod's by its name, whatever is in it.
		h.Pod.UID = types.UID(uid)
		all = append(all, h)
	}
	return all, errors.Join(errs...)
}

// WriteHistory replaces the pod's history. It is not forced onto the disk: a crash of
// the machine may lose it. The caller holds the pod's lock.
func (p Pod) WriteHistory(h *History) (err error) {
	h.Version = historyVersion
	text, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("writing the pod's events: %w", err)
	}
	if err = firstError(p.check(), p.layout.Prepare()); err == nil {
		err = p.replaceHistory(text)
	}
	if err != nil {
		return fmt.Errorf("writing the pod's events: %w", err)
	}
	return nil
}

// replaceHistory puts a new history in the place of the one before.
func (p Pod) replaceHistory(text []byte) error {
	dir, err := makeAll(p.layout.histories(), podDirMode, podDirMode)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	unfinished := filepath.Base(p.unfinishedHistory())
	if err = dir.Remove(unfinished); err != nil {
		return err
	}
	file, err := dir.Create(unfinished, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return dir.Replace(unfinished, filepath.Base(p.HistoryFile()))
}
