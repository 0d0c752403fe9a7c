package state

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// FuzzDecodeHistory: events that nobody wrote are read as none, and those that are read
// can be added to, stay within their bounds, and can be read again.
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
			t.Errorf("what was written is read as something else: %v\n%s\n%s", err, again, third)
		}
	})
}

// FuzzHolder: whatever stands in a lock's file, what is said of its holder is one short
// line for a terminal.
func FuzzHolder(f *testing.F) {
	for _, seed := range []string{"", "pid 1 (podctl apply web)\n", "\x1b[2J", "pid 1 (\xff\xfe)", "a\nb"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "x.lock")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		holder := readHolder(path)
		if holder == "" || len(holder) > 2*commandMax || !utf8.ValidString(holder) {
			t.Errorf("holder %q", holder)
		}
		for _, r := range holder {
			if unicode.IsControl(r) {
				t.Errorf("holder %q", holder)
			}
		}
	})
}
