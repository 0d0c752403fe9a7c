package events

import (
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// secretPod returns a pod with a Secret.
func secretPod(t *testing.T) *podspec.Desired {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(`apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: a, image: 'i:1', env: [{name: P, valueFrom: {secretKeyRef: {name: s, key: p}}}]}]
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {p: correct horse}
`)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	return m.Pods[0]
}

// TestRecorders checks that records are added to the history, without values of Secrets, and that an empty Recorder
// writes nothing.
func TestRecorders(t *testing.T) {
	pod := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}.Pod("u")
	ref := model.PodRef{Namespace: "ns", Name: "web", UID: "u"}
	if err := (&Recorder{}).Write(pod, ref, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(pod.History().Path()); !os.IsNotExist(err) {
		t.Errorf("of nothing there is a history: %v", err)
	}
	for range 2 {
		var r Recorder
		r.Normal(noon, "Started", "a", "Container started")
		r.Warning(noon, "Unhealthy", "a", "failed with correct horse")
		r.Span(state.Span{Kind: "Ready", Object: "a", Begin: noon, End: noon})
		r.Decision(state.Decision{Kind: "StartContainer", Message: "correct horse", Error: "correct horse", Last: noon})
		r.DecisionOnce(noon, state.Decision{Kind: state.Held, Message: "x", Last: noon})
		if err := r.Write(pod, ref, redaction.New([]byte("correct horse"))); err != nil {
			t.Fatal(err)
		}
	}
	h, err := pod.History().Read()
	if err != nil || h.Pod != ref || len(h.Events) != 2 || len(h.Spans) != 2 {
		t.Fatalf("%+v, %v", h, err)
	}
	if e := h.Events[1]; e.Type != state.Warning ||
		e.Count != 2 || strings.Contains(e.Message, "correct horse") || !strings.Contains(e.Message, "failed with") {
		t.Errorf("%+v", e)
	}
	// The hold is recorded once since its time. The order is that of the last decisions.
	if d := h.Decisions; len(d) != 2 || d[0].Kind != state.Held || d[0].Count != 1 || d[1].Count != 2 ||
		strings.Contains(d[1].Message+d[1].Error, "correct horse") {
		t.Errorf("%+v", h.Decisions)
	}
}

// TestShownMessagesAreRedacted checks that values of Secrets that are known now are removed from earlier events.
// TestEvicted checks that an eviction is recorded once, with the annotations of its event.
func TestEvicted(t *testing.T) {
	pod := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}.Pod("u")
	why := &model.Eviction{At: noon, Annotations: map[string]string{"starved_resource": "memory"}}
	for i := range 2 {
		var r Recorder
		r.Evicted(noon.Add(time.Duration(i)*time.Minute), why, "x")
		if err := r.Write(pod, model.PodRef{UID: "u"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	h, err := pod.History().Read()
	if err != nil || len(h.Events) != 1 {
		t.Fatalf("%+v, %v", h, err)
	}
	if e := h.Events[0]; e.Type != state.Warning || e.Reason != "Evicted" || e.Count != 1 || !maps.Equal(e.Annotations, why.Annotations) {
		t.Errorf("%+v", e)
	}
}

func TestShownMessagesAreRedacted(t *testing.T) {
	d := secretPod(t)
	ref := model.RefOf(d.Pod)
	for name, known := range map[string]bool{"known": true, "not known": false} {
		layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
		pod := layout.Pod(ref.UID)
		if err := pod.History().Write(&state.History{
			Pod:    ref,
			Events: []state.PodEvent{{Message: "failed with correct horse", Last: noon}},
		}); err != nil {
			t.Fatal(err)
		}
		if known {
			if err := pod.Checkpoint().Write(&state.Checkpoint{Memory: model.Memory{Applied: d}}); err != nil {
				t.Fatal(err)
			}
		}
		h, err := History(layout, ref)
		all, allErr := Events(layout)
		if err != nil || allErr != nil || len(all) != 1 || h.Pod.UID != ref.UID {
			t.Fatal(err, allErr, all)
		}
		for _, message := range []string{h.Events[0].Message, all[0].Events[0].Message} {
			if strings.Contains(message, "correct horse") == known || !strings.Contains(message, "failed with") {
				t.Errorf("%s: %q", name, message)
			}
		}
	}
}

// TestEventsOfAllPods checks that the pod with the latest event comes last, that one without events is left out, and
// that an unreadable history does not affect others.
func TestEventsOfAllPods(t *testing.T) {
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	for name, minutes := range map[string][]int{"late": {1, 9}, "early": {5}, "silent": nil} {
		h := &state.History{Pod: model.PodRef{Name: name}}
		for _, m := range minutes {
			h.Events = append(h.Events, state.PodEvent{Reason: "Started", Last: noon.Add(time.Duration(m) * time.Minute)})
		}
		if err := layout.Pod(types.UID(name)).History().Write(h); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Events(layout)
	if err != nil || len(all) != 2 || all[0].Pod.Name != "early" || all[1].Pod.Name != "late" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestListener checks that a listener gets each new event once, without values of Secrets.
func TestListener(t *testing.T) {
	pod := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}.Pod("u")
	ref := model.PodRef{Namespace: "ns", Name: "web", UID: "u"}
	var received []string
	for range 2 {
		r := Recorder{Listen: func(pod model.PodRef, events []state.PodEvent) {
			for _, e := range events {
				received = append(received, pod.Name+" "+e.Message)
			}
		}}
		r.Normal(noon, "Started", "a", "the answer is correct horse")
		r.WarningOnce(noon, noon.Add(-time.Minute), "BackOff", "a", "once")
		if err := r.Write(pod, ref, redaction.New([]byte("correct horse"))); err != nil {
			t.Fatal(err)
		}
	}
	if len(received) != 3 || strings.Contains(received[0], "horse") || received[1] != "web once" || received[2] != received[0] {
		t.Errorf("%q", received)
	}
}
