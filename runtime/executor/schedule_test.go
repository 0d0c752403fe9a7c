package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// graph runs steps that only record that they ran; those named in failing fail.
func graph(t *testing.T, steps []plan.Step, failing ...string) (events []string) {
	t.Helper()
	report := &reporter{plan: &plan.Plan{Steps: steps}, now: time.Now, notify: func(ev Event) {
		if ev.Kind != StepStarted {
			events = append(events, ev.Step.ID+" "+string(ev.Kind))
		}
	}}
	x := newScheduler(&plan.Plan{Steps: steps}, report)
	x.slots = make(chan struct{}, 2)
	x.act = func(_ context.Context, s *plan.Step) (string, error) {
		if slices.Contains(failing, s.ID) {
			return "", errors.New("injected failure")
		}
		return "", nil
	}
	x.drop = func(context.Context, *plan.Step) {}
	x.run(t.Context())
	return events
}

func TestFailuresSkipDependentSteps(t *testing.T) {
	steps := func(onFailure plan.OnFailure) []plan.Step {
		return []plan.Step{
			{ID: "a", OnFailure: onFailure},
			waits(plan.Step{ID: "b"}, "a"),
			waits(plan.Step{ID: "c"}, "b"),
		}
	}
	cases := map[string]struct {
		onFailure plan.OnFailure
		want      []string
	}{
		"abort leaves out the rest":                        {plan.Abort, []string{"a Failed", "b Skipped", "c Skipped"}},
		"skipContainer skips later steps of the container": {plan.SkipContainer, []string{"a Failed", "b Skipped", "c Skipped"}},
		"continue runs later steps":                        {plan.Continue, []string{"a Failed", "b Done", "c Done"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, graph(t, steps(c.onFailure), "a")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestSkippingKeepsSiblings checks that a container that cannot start does not block those that only come after it. A
// failed init container blocks everything.
func TestSkippingKeepsSiblings(t *testing.T) {
	for onFailure, last := range map[plan.OnFailure]string{plan.Continue: "start-b Done", plan.Abort: "start-b Skipped"} {
		got := graph(t, []plan.Step{
			{ID: "pull-a", OnFailure: plan.SkipContainer},
			waits(plan.Step{ID: "start-a", OnFailure: onFailure}, "pull-a"),
			waits(plan.Step{ID: "start-b", OnFailure: plan.Continue}, "start-a"),
			{ID: "start-c", OnFailure: plan.Continue},
		}, "pull-a")
		slices.Sort(got)
		if diff := cmp.Diff([]string{"pull-a Failed", "start-a Skipped", last, "start-c Done"}, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", onFailure, diff)
		}
	}
}

// scheduled returns a scheduler of steps whose action is act.
func scheduled(steps []plan.Step, notify func(Event), act func(context.Context, *plan.Step) (string, error)) *scheduler {
	x := newScheduler(&plan.Plan{Steps: steps}, &reporter{plan: &plan.Plan{Steps: steps}, now: time.Now, notify: notify})
	x.act, x.drop = act, func(context.Context, *plan.Step) {}
	return x
}

// TestStepsBeginOnceTheirNeedsAreMet checks that a step waits for the end of its needs, or only for the exit where that
// is enough. Earlier steps are still reported first.
func TestStepsBeginOnceTheirNeedsAreMet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, starts, reported := time.Now(), map[string]time.Duration{}, []string{}
		var mu sync.Mutex
		var x *scheduler
		x = scheduled([]plan.Step{
			{ID: "stop", Kind: plan.StopContainer},
			waitsForExit(plan.Step{ID: "start"}, "stop"),
			waits(plan.Step{ID: "remove"}, "stop"),
			{ID: "other"},
		}, func(ev Event) {
			if ev.Kind == StepDone {
				reported = append(reported, ev.Step.ID)
			}
		}, func(_ context.Context, s *plan.Step) (string, error) {
			mu.Lock()
			starts[s.ID] = time.Since(began)
			mu.Unlock()
			if s.ID == "stop" {
				time.Sleep(2 * time.Second)
				x.gates["stop"].exit()
				time.Sleep(3 * time.Second)
			}
			return "", nil
		})
		x.run(t.Context())
		want := map[string]time.Duration{"stop": 0, "other": 0, "start": 2 * time.Second, "remove": 5 * time.Second}
		if diff := cmp.Diff(want, starts); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if !slices.Equal(reported[:2], []string{"other", "stop"}) || len(reported) != 4 {
			t.Errorf("reported in the order %v", reported)
		}
	})
}

// TestStopsUseNoSlot checks that the number of concurrent steps is limited, and that stops, which wait for other
// steps, do not use a slot.
func TestStopsUseNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []plan.Step
		for i := range 2 * maxConcurrent {
			steps = append(steps, plan.Step{ID: fmt.Sprint("stop", i), Kind: plan.StopContainer}, plan.Step{
				ID:   fmt.Sprint("start", i),
				Kind: plan.StartContainer,
			})
		}
		var mu sync.Mutex
		now, most := map[plan.Kind]int{}, map[plan.Kind]int{}
		x := scheduled(steps, nil, func(_ context.Context, s *plan.Step) (string, error) {
			mu.Lock()
			now[s.Kind]++
			most[s.Kind] = max(most[s.Kind], now[s.Kind])
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now[s.Kind]--
			mu.Unlock()
			return "", nil
		})
		x.run(t.Context())
		if most[plan.StartContainer] != maxConcurrent || most[plan.StopContainer] != 2*maxConcurrent {
			t.Errorf("concurrent steps %v", most)
		}
	})
}

// TestReplacementsAreCreatedEarly checks that they are created beside the stop, once their needs are met, but not after
// a failure. A replacement that does not start is dropped.
func TestReplacementsAreCreatedEarly(t *testing.T) {
	for name, c := range map[string]struct {
		failing string
		want    []string
	}{
		"all is well":     {"", []string{"pull", "create start", "stop", "start"}},
		"the pull failed": {"pull", []string{"pull", "stop", "drop start"}},
		"the stop failed": {"stop", []string{"pull", "create start", "stop", "drop start"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var did []string
			note := func(what string) {
				mu.Lock()
				defer mu.Unlock()
				did = append(did, what)
			}
			x := scheduled([]plan.Step{
				{ID: "pull", OnFailure: plan.SkipContainer},
				{ID: "stop", Kind: plan.StopContainer, OnFailure: plan.SkipContainer},
				createsAfter(waits(plan.Step{ID: "start"}, "pull", "stop"), "pull"),
			}, nil, func(_ context.Context, s *plan.Step) (string, error) {
				if s.ID == "stop" {
					time.Sleep(time.Second)
				}
				note(s.ID)
				if s.ID == c.failing {
					return "", errors.New("injected failure")
				}
				return "", nil
			})
			x.create = func(_ context.Context, s *plan.Step) { note("create " + s.ID) }
			x.drop = func(_ context.Context, s *plan.Step) { note("drop " + s.ID) }
			x.run(t.Context())
			if diff := cmp.Diff(c.want, did); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", name, diff)
			}
		})
	}
}

// TestInterruptionsSkip checks that running steps finish, and that no other step begins.
func TestInterruptionsSkip(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	x := scheduled([]plan.Step{{ID: "a", OnFailure: plan.Continue}, waits(plan.Step{ID: "b", OnFailure: plan.Continue}, "a")}, nil,
		func(context.Context, *plan.Step) (string, error) { cancel(); return "", nil })
	x.run(ctx)
	if len(x.failed) > 0 || len(x.skipped) != 1 || x.skipped[0].ID != "b" || x.complete() ||
		!x.undone(&x.plan.Steps[1]) || x.undone(&x.plan.Steps[0]) {
		t.Errorf("failed %v, skipped %v", x.failed, x.skipped)
	}
}

// TestChangedStateIsNotAFailure checks that the pass ends, later steps are skipped, and no step has failed.
func TestChangedStateIsNotAFailure(t *testing.T) {
	x := scheduled([]plan.Step{{ID: "a", OnFailure: plan.Continue}, waits(plan.Step{ID: "b"}, "a")}, nil,
		func(context.Context, *plan.Step) (string, error) {
			return "", &StateChangedError{err: errors.New("gone")}
		})
	x.run(t.Context())
	if x.changed == nil || len(x.failed) > 0 || len(x.skipped) != 1 {
		t.Errorf("changed %v, failed %v, skipped %v", x.changed, x.failed, x.skipped)
	}
	if x.skipped = nil; x.complete() {
		t.Error("a pass that ended with a changed state is complete")
	}
}

// TestRefusalDoesNotFailThePass checks that a refused part is reported as a failure and counts as done.
func TestRefusalDoesNotFailThePass(t *testing.T) {
	x := scheduled([]plan.Step{{ID: "a", Kind: plan.RemoveVolume}}, nil,
		func(context.Context, *plan.Step) (string, error) { return "", nil })
	x.refuse(&x.plan.Steps[0], errors.New("no"))
	if !x.complete() || len(x.refused) != 1 || x.refused[0].Reason != model.Reason(plan.RemoveVolume) {
		t.Errorf("complete %t, refused %+v", x.complete(), x.refused)
	}
}
