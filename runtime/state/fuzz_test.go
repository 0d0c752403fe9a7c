package state

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// FuzzDecodeHistory checks that arbitrary text is read as an empty history or as a valid one. A valid one can be
// extended within its limits and read again.
func FuzzDecodeHistory(f *testing.F) {
	full, err := json.Marshal(&History{
		Version: historyVersion,
		Events:  []PodEvent{{Type: Normal, Reason: "Started", Message: "x", Count: 2, Last: time.Unix(1, 0).UTC()}},
		Spans:   []Span{{Kind: "RunSandbox", End: time.Unix(2, 0).UTC()}},
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(full), `{"version":1,"events":[{"count":-1}]}`, `null`, `{"version":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h := decodeHistory(text)
		h.Add(PodEvent{Type: Warning, Reason: "BackOff", Message: string(text)})
		h.Mark(Span{Kind: "RunSandbox"}, Span{Kind: "Ready"})
		h.Version = historyVersion
		if last := h.Events[len(h.Events)-1]; len(h.Events) > eventsMax || len(h.Spans) > spansMax || len(last.Message) > messageMax {
			t.Errorf("%d events, %d spans, %d bytes", len(h.Events), len(h.Spans), len(last.Message))
		}
		again, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if third, err := json.Marshal(decodeHistory(again)); err != nil || !bytes.Equal(again, third) {
			t.Errorf("the written file is read as something else: %v\n%s\n%s", err, again, third)
		}
	})
}
