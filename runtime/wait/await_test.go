package wait

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestAwaitChangesNothing checks that it does not start a crashed container, and that the goal is reached once another
// process starts it.
func TestAwaitChangesNothing(t *testing.T) {
	l := newLab(t, "i:1")
	d := loadPod(t, onePod())
	l.server.Behave("a", runtimetest.Behaviour{After: time.Millisecond, ExitCode: 1})
	l.apply(d)
	time.Sleep(2 * time.Millisecond)
	ctx := l.server.ExpireAt(t.Context(), "", "ListContainers", 10)
	before := len(l.server.Calls())
	if err := l.Await(ctx, d, Started); !errors.As(err, new(*TimeoutError)) || len(l.server.Calls()) != before {
		t.Errorf("%v after %v", err, l.server.Calls()[before:])
	}
	l.apply(d)
	if err := l.Await(t.Context(), d, Started); err != nil {
		t.Error(err)
	}
}

// TestFollowLeavesPassesToOthers checks that it only watches after its own pass. Another process restarts a crashed
// container, and no probe runs.
func TestFollowLeavesPassesToOthers(t *testing.T) {
	l := newLab(t, "i:1")
	d := loadPod(t, strings.Replace(onePod(), "image: 'i:1'", "image: 'i:1', readinessProbe: {exec: {command: [ok]}, periodSeconds: 1}", 1))
	ctx := l.server.ExpireAt(t.Context(), "StartContainer", "ListContainers", 10)
	outcome, err := l.Follow(ctx, d, Ready, executor.Options{})
	if !errors.As(err, new(*TimeoutError)) || outcome == nil || len(outcome.Plan.Steps) == 0 {
		t.Errorf("%v of %+v", err, outcome)
	}
	for _, call := range l.server.Calls() {
		if strings.HasPrefix(call, "ExecSync") {
			t.Errorf("it runs a probe: %s", call)
		}
	}
	if outcome, err = l.Follow(t.Context(), d, Started, executor.Options{}); err != nil || len(outcome.Plan.Steps) != 0 {
		t.Errorf("%v of %+v", err, outcome)
	}
}

// TestAwaitOfPodsThatEnd checks that a failed pod reaches no goal but its end, and that a succeeded pod has not
// started.
func TestAwaitOfPodsThatEnd(t *testing.T) {
	for code, wants := range map[int32]map[Goal]string{
		0: {Completed: "", Ready: "", Started: "the pod has ended as Succeeded"},
		1: {
			Completed:         "has ended as Failed: a exited 1",
			Ready:             "the pod has ended as Failed: a exited 1",
			"condition=Ready": "the pod has ended as Failed",
		},
	} {
		l := newLab(t, "i:1")
		l.server.Behave("a", runtimetest.Behaviour{After: time.Millisecond, ExitCode: code})
		d := loadPod(t, never(onePod()))
		l.apply(d)
		time.Sleep(2 * time.Millisecond)
		for goal, want := range wants {
			err := l.Await(t.Context(), d, goal)
			if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
				t.Errorf("exit code %d, %s: %v, want %q", code, goal, err, want)
			}
		}
	}
}

// TestAwaitOfDeletions checks that a pod is deleted once neither the runtime nor podctl has anything of it.
func TestAwaitOfDeletions(t *testing.T) {
	l := newLab(t, "i:1")
	d := loadPod(t, onePod())
	ref := model.RefOf(d.Pod)
	if err := l.Await(t.Context(), d, Deleted); err != nil {
		t.Errorf("of a pod that never was: %v", err)
	}
	l.apply(d)
	ctx := l.server.ExpireAt(t.Context(), "", "ListContainers", 10)
	if err := l.Await(ctx, d, Deleted); err == nil || !strings.Contains(err.Error(), "is not deleted in time: the pod is there") {
		t.Errorf("of a pod that runs: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Await(t.Context(), d, Deleted) }()
	if outcome, err := l.pods.Delete(t.Context(), ref, executor.Options{}); err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAwaitOfHooks checks that a pod is neither started nor ready while another process runs the postStart hook of one
// of its containers. The end of the hook is seen without an event.
func TestAwaitOfHooks(t *testing.T) {
	for _, goal := range []Goal{Started, Ready} {
		l := newLab(t, "i:1")
		d := loadPod(t, onePod())
		l.apply(d)
		list, err := l.observer.ListContainers(t.Context(), model.RefOf(d.Pod))
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		end, err := l.layout.Pod(d.Pod.UID).Hooks().Begin(list[0].GetId())
		if err != nil {
			t.Fatal(err)
		}
		w := l.waiter(d, goal)
		if done, pollErr := w.poll(t.Context(), model.RefOf(d.Pod)); done || pollErr != nil || time.Until(w.nextObservation()) > pauseMax {
			t.Errorf("%s: done %t, %v", goal, done, pollErr)
		}
		if err = end(); err != nil {
			t.Fatal(err)
		}
		if done, pollErr := w.poll(t.Context(), model.RefOf(d.Pod)); !done || pollErr != nil {
			t.Errorf("%s, after the hook: done %t, %v", goal, done, pollErr)
		}
	}
}
