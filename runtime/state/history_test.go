package state

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/model"
)

func TestEventsAreCountedAndBounded(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	h := &History{}
	h.Add(PodEvent{Type: Warning, Reason: "BackOff", Container: "app", Message: "m", Last: noon})
	h.Add(PodEvent{Type: Normal, Reason: "Started", Container: "app", Last: noon.Add(time.Second)})
	h.Add(PodEvent{Type: Warning, Reason: "BackOff", Container: "app", Message: "m", Last: noon.Add(time.Minute)})
	if len(h.Events) != 2 {
		t.Fatalf("%d events, two are different", len(h.Events))
	}
	if e := h.Events[1]; e.Reason != "BackOff" || e.Count != 2 || !e.First.Equal(noon) || !e.Last.Equal(noon.Add(time.Minute)) {
		t.Errorf("the repeated event is %+v", e)
	}
	for i := range 3 * eventsMax {
		h.Add(PodEvent{Reason: fmt.Sprint(i), Message: strings.Repeat("é", messageMax)})
	}
	if len(h.Events) != eventsMax || h.Events[eventsMax-1].Reason != fmt.Sprint(3*eventsMax-1) {
		t.Errorf("%d events are kept, the newest is %s", len(h.Events), h.Events[len(h.Events)-1].Reason)
	}
	if n := len(h.Events[0].Message); n > messageMax {
		t.Errorf("a message has %d bytes", n)
	}
	long := PodEvent{Reason: fmt.Sprint(3*eventsMax - 1), Message: strings.Repeat("é", messageMax)}
	if !h.HasSince(time.Time{}, long) {
		t.Error("an event with a shortened message is not found again")
	}
}

// TestEquivalentEventsAreMerged checks that events that differ only in the id of a command's run or in elapsed time
// are equal.
func TestEquivalentEventsAreMerged(t *testing.T) {
	for text, pair := range map[string][2]string{
		"runs": {
			`failed to start exec "` + strings.Repeat("a", 64) + `": no such file`,
			`failed to start exec "` + strings.Repeat("b", 64) + `": no such file`,
		},
		"times": {
			"liveness probe failed: 500, but that was 2s ago; probe again",
			"liveness probe failed: 500, but that was 1m3s ago; probe again",
		},
	} {
		h := &History{}
		h.Add(PodEvent{Reason: "Unhealthy", Message: pair[0]},
			PodEvent{Reason: "Unhealthy", Message: pair[1]}, PodEvent{Reason: "Unhealthy", Message: "exited 1"})
		if len(h.Events) != 2 || h.Events[0].Count != 2 || h.Events[0].Message != pair[1] {
			t.Errorf("%s: %+v", text, h.Events)
		}
	}
}

func TestANewSandboxBeginsANewTimeline(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	h := &History{}
	h.Mark(
		Span{Kind: "StartContainer", Object: "old", Begin: at(0), End: at(1)},
		Span{Kind: "PullImage", Object: "image", Begin: at(10), End: at(13)},
		Span{Kind: "RunSandbox", Begin: at(11), End: at(12)},
	)
	if len(h.Spans) != 2 || h.Spans[0].Object != "image" {
		t.Errorf("the timeline has %+v", h.Spans)
	}
}

// TestRestartsLeaveTheStart checks that a container that crashes all day displaces neither the spans of its pod's start
// nor the latest ones.
func TestRestartsLeaveTheStart(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	h := &History{}
	h.Mark(Span{Kind: "RunSandbox", Begin: noon, End: noon})
	for i := range 3 * spansMax {
		at := noon.Add(time.Duration(i+1) * time.Minute)
		h.Mark(Span{Kind: "StartContainer", Object: "a", Begin: at, End: at})
	}
	last := h.Spans[len(h.Spans)-1].Begin
	if len(h.Spans) != spansMax || h.Spans[0].Kind != "RunSandbox" ||
		h.Spans[1].Begin.Sub(noon) != time.Minute || last.Sub(noon) != 3*spansMax*time.Minute {
		t.Errorf("%d spans are kept, first %+v, last %s", len(h.Spans), h.Spans[:2], last)
	}
}

func TestHistoryOutlivesItsPod(t *testing.T) {
	layout := Layout{Root: t.TempDir()}
	pod := layout.Pod("u1")
	h := &History{Pod: model.PodRef{Namespace: "default", Name: "web", UID: "u1"}}
	h.Add(PodEvent{Type: Normal, Reason: "Started"})
	if err := pod.History().Write(h); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(pod.History().Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is there with mode %v: %v", info.Mode(), err)
	}
	if err := pod.Checkpoint().Remove(); err != nil {
		t.Fatal(err)
	}
	all, err := layout.Histories().All()
	if err != nil || len(all) != 1 || all[0].Pod.Name != "web" || len(all[0].Events) != 1 {
		t.Errorf("histories: %+v, %v", all, err)
	}
	for _, damaged := range []string{"", `{"version":1,"ev`, "\x00\x00"} {
		if err := os.WriteFile(pod.History().Path(), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if h, err := pod.History().Read(); err != nil || len(h.Events) != 0 {
			t.Errorf("the history %q is %+v, %v; it is empty and no error", damaged, h, err)
		}
	}
}

// TestDecisionsAreCountedAndBounded checks that a decision that is repeated for another attempt is counted, and that
// the newest decisions are kept.
func TestDecisionsAreCountedAndBounded(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	h := &History{}
	for i := range 3 {
		h.Decide(Decision{
			Kind: "StartContainer", Container: "a", Attempt: uint32(i), Message: fmt.Sprintf("exited 1 %ds ago", i),
			Last: noon.Add(time.Duration(i) * time.Minute),
		})
	}
	h.Decide(Decision{Kind: "StartContainer", Container: "b", Message: "exited 1 0s ago"})
	h.Decide(Decision{Kind: "StartContainer", Container: "b", Message: "exited 1 0s ago", Error: "no"})
	if d := h.Decisions[0]; len(h.Decisions) != 3 || d.Count != 3 || d.Attempt != 2 || !d.First.Equal(noon) ||
		!d.Last.Equal(noon.Add(2*time.Minute)) {
		t.Errorf("%+v", h.Decisions)
	}
	if d := h.Decisions[0]; !h.DecidedSince(d.Last, d) || h.DecidedSince(d.Last.Add(time.Second), d) {
		t.Error("the time of a decision is not compared")
	}
	for i := range 2 * decisionsMax {
		h.Decide(Decision{Kind: fmt.Sprint(i), Message: strings.Repeat("é", messageMax), Error: strings.Repeat("é", messageMax)})
	}
	if d := h.Decisions[decisionsMax-1]; len(h.Decisions) != decisionsMax || d.Kind != fmt.Sprint(2*decisionsMax-1) ||
		len(d.Message) > messageMax || len(d.Error) > messageMax {
		t.Errorf("%d decisions, the last is %s", len(h.Decisions), d.Kind)
	}
}
