package view

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/wait"
)

// TestMovingLines: there is one line for each running step and for each wait, and none for ended ones.
func TestMovingLines(t *testing.T) {
	start := time.Unix(1000, 0)
	now := start
	m := &moving{now: func() time.Time { return now }, failures: map[string]bool{}}
	pod := model.PodRef{Namespace: "default", Name: "web"}
	grace := int64(30)
	pull := &plan.Step{ID: "pull", Kind: plan.PullImage, Image: "registry/app:1"}
	stop := &plan.Step{ID: "stop", Kind: plan.StopContainer, Container: "old", GracePeriodSeconds: &grace}
	event := func(kind executor.EventKind, s *plan.Step, change func(*executor.Event)) {
		ev := executor.Event{Kind: kind, Pod: pod, Step: s, Time: now}
		if change != nil {
			change(&ev)
		}
		m.event(&ev)
	}
	want := func(what string, lines ...string) {
		t.Helper()
		if diff := cmp.Diff(lines, m.lines(79)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", what, diff)
		}
	}
	m.waits(pod, []wait.Obstacle{
		{Container: "app", Text: "readiness probe (3/10): 404", Since: start.Add(-5 * time.Second)},
		{Container: "bad", Text: "back-off 10s, exit code 3", Until: start.Add(8 * time.Second)},
		{Text: "no address yet"},
	})
	want("a wait", "  … wait    app  readiness probe (3/10): 404  5s",
		"  … wait    bad  back-off 10s, exit code 3  8s left", "  … wait      no address yet")
	event(executor.StepStarted, pull, nil)
	event(executor.StepStarted, stop, nil)
	want("two steps", "  … pull    registry/app:1  0s", "  … stop    old  0s")
	for range 3 {
		now = now.Add(500 * time.Millisecond)
		event(executor.StepProgress, pull,
			func(ev *executor.Event) { ev.Bytes, ev.TotalBytes = now.Sub(start).Milliseconds()*1024, 4<<20 })
	}
	event(executor.StepProgress, stop,
		func(ev *executor.Event) { ev.Until, ev.Detail = start.Add(30*time.Second), "asked to exit" })
	now = start.Add(4 * time.Second)
	want("how far they are", "  … pull    registry/app:1  1.465MiB of 4MiB, 1000KiB/s  4s",
		"  … stop    old  killed in 26s")
	event(executor.StepDone, stop, nil)
	event(executor.StepFailed, pull, nil)
	want("all ended")
}

// TestMovingLinesAreCut: a long line is cut in its text, so that the time remains.
func TestMovingLinesAreCut(t *testing.T) {
	m := &moving{now: func() time.Time { return time.Unix(9, 0) }, several: true}
	m.waits(model.PodRef{Namespace: "a", Name: "b"},
		[]wait.Obstacle{{Container: "app", Text: "something that is rather long", Since: time.Unix(1, 0)}})
	for width, want := range map[int]string{
		60: "  … a/b  wait    app  something that is rather long  8s", 40: "  … a/b  wait    app  something tha…  8s",
		32: "  … b  wait    app  somethi…  8s", 20: "  … b  wait    …  8s",
	} {
		if got := m.lines(width); len(got) != 1 || got[0] != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}

// TestFailuresAreShownOnce: when a wait tries again, the same failure is not printed again.
func TestFailuresAreShownOnce(t *testing.T) {
	m := &moving{failures: map[string]bool{}}
	step := &plan.Step{ID: "pull"}
	for i, c := range []struct {
		text     string
		repeated bool
	}{{"refused", false}, {"refused", true}, {"not found", false}} {
		got := m.event(&executor.Event{Kind: executor.StepFailed, Step: step, Err: errors.New(c.text)})
		if got != c.repeated {
			t.Errorf("%d: %v", i, got)
		}
	}
	for i, repeated := range []bool{false, true} {
		if got := m.event(&executor.Event{Kind: executor.StepSkipped, Step: &plan.Step{ID: "start"}}); got != repeated {
			t.Errorf("skipped, %d: %v", i, got)
		}
	}
}
