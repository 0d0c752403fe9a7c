package runtime

import (
	"slices"
	"testing"

	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// TestObserveEvents checks that a listener receives the events of passes and of probes.
func TestObserveEvents(t *testing.T) {
	l := newProbeLab(t, model.Liveness, "3")
	var received []string
	l.engine.ObserveEvents(func(pod model.PodRef, events []state.PodEvent) {
		for _, e := range events {
			received = append(received, pod.Name+" "+e.Container+" "+e.Reason)
		}
	})
	l.keep(l.ask(true))
	if _, err := l.engine.Pods.Delete(t.Context(), model.RefOf(l.desired.Pod), executor.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"web a Unhealthy", "web a Killing"} {
		if !slices.Contains(received, want) {
			t.Errorf("%s is not in %q", want, received)
		}
	}
}
