package runtime

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
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
	pulled := l.load("apiVersion: v1\nkind: Pod\nmetadata: {name: absent}\nspec: {containers: [{name: a, image: 'absent:1'}]}\n")
	l.server.Fail(runtimetest.Fault{Method: "PullImage", Times: 9, Err: errors.New("no")})
	outcome, err := l.engine.Pods.Apply(t.Context(), pulled, executor.Options{})
	if err != nil || len(outcome.Failed) == 0 {
		t.Fatal(outcome, err)
	}
	if err = l.engine.Pods.NotePullPause(t.Context(), outcome, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"absent a BackOff", "web a Unhealthy", "web a Killing"} {
		if !slices.Contains(received, want) {
			t.Errorf("%s is not in %q", want, received)
		}
	}
}
