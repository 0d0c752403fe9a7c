package executor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/plan"
)

// graph runs steps that only note that they ran; those named in failing fail.
func graph(t *testing.T, steps []plan.Step, failing ...string) (events []string) {
	t.Helper()
	report := &reporter{now: time.Now, notify: func(ev Event) {
		if ev.Kind != StepStarted {
			events = append(events, ev.Step.ID+" "+string(ev.Kind))
		}
	}}
	x := newScheduler(&plan.Plan{Steps: steps}, report)
	x.slots = make(chan struct{}, 2)
	x.act = func(_ context.Context, s *plan.Step) (string, error) {
		if slices.Contains(failing, s.ID) {
			return "", errors.New("told to fail")
		}
		return "", nil
	}
	x.drop = func(context.Context, *plan.Step) {}
	x.run(t.Context())
	return events
}

func TestFailuresStopWhatTheySay(t *testing.T) {
	steps := func(onFailure plan.OnFailure) []plan.Step {
		return []plan.Step{
			{ID: "a", OnFailure: onFailure},
			{ID: "b", Needs: plan.After("a")},
			{ID: "c", Needs: plan.After("b")},
		}
	}
	cases := map[string]struct {
		onFailure plan.OnFailure
		want      []string
	}{
		"abort leaves out the rest":                 {plan.Abort, []string{"a Failed", "b Skipped", "c Skipped"}},
		"skipContainer leaves out what comes after": {plan.SkipContainer, []string{"a Failed", "b Skipped", "c Skipped"}},
		"continue goes on":                          {plan.Continue, []string{"a Failed", "b Done", "c Done"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, graph(t, steps(c.onFailure), "a")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestSkippingSparesSiblings: a container that cannot be started keeps none from starting
// that only comes after it. Without a plain init container nothing goes on.
func TestSkippingSparesSiblings(t *testing.T) {
	for onFailure, last := range map[plan.OnFailure]string{plan.Continue: "start-b Done", plan.Abort: "start-b Skipped"} {
		got := graph(t, []plan.Step{
			{ID: "pull-a", OnFailure: plan.SkipContainer},
			{ID: "start-a", OnFailure: onFailure, Needs: plan.After("pull-a")},
			{ID: "start-b", OnFailure: plan.Continue, Needs: plan.After("start-a")},
			{ID: "start-c", OnFailure: plan.Continue},
		}, "pull-a")
		slices.Sort(got)
		if diff := cmp.Diff([]string{"pull-a Failed", "start-a Skipped", last, "start-c Done"}, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", onFailure, diff)
		}
	}
}
