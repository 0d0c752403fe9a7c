package agent

import (
	"errors"
	"testing"

	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/syncpod"
)

// TestPreconditionsOfPasses checks the precondition of a pass. The pass stops if another process has deleted the pod,
// or has begun to, without the loop's knowledge. A pod in its first pass, and one with an unreadable checkpoint, is
// applied.
func TestPreconditionsOfPasses(t *testing.T) {
	d := pod("web", "a", "i:1", "dir")
	ref := model.RefOf(d.Pod)
	gone, ending := &syncpod.SupersededError{Pod: ref, Deleted: true}, &syncpod.SupersededError{Pod: ref, Deleting: true}
	for name, c := range map[string]struct {
		again bool
		of    state.Checkpoint
		want  *syncpod.SupersededError
	}{
		"as it was":         {true, state.Checkpoint{Memory: model.Memory{Applied: d}}, nil},
		"the first pass":    {false, state.Checkpoint{}, nil},
		"gone":              {true, state.Checkpoint{}, gone},
		"unreadable":        {true, state.Checkpoint{Unreadable: true}, nil},
		"being deleted":     {true, state.Checkpoint{Memory: model.Memory{Applied: d, Deletion: &model.Deletion{}}}, ending},
		"of another's time": {false, state.Checkpoint{Memory: model.Memory{Applied: d, Deletion: &model.Deletion{}}}, ending},
	} {
		err := ifUnchanged(&podworkers.Pass{Kind: podworkers.Sync, Ref: ref, Pod: d, Repeated: c.again})(&c.of)
		got := (*syncpod.SupersededError)(nil)
		errors.As(err, &got)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestPodDeletedByAnotherProcess checks that a pod deleted outside the agent is recreated by the pass after the one
// that finds it gone.
func TestPodDeletedByAnotherProcess(t *testing.T) {
	l := newStill(t)
	l.wants["one"]["a"] = l.manifest("one", "a", "a1", 1)
	l.sendUpdate("one")
	l.sendUpdate("two")
	l.rest(0)
	first := l.runs("a1")
	delete(l.pods, "a1")
	l.removes(first).do()
	l.rest(0)
	if now := l.runs("a1"); first == nil || now == nil || now == first || l.pods["a1"] == nil {
		t.Errorf("container %+v was replaced with %+v", first, now)
	}
}

// TestPlansOfPasses checks that the loop learns of each change between plans with and without a start.
func TestPlansOfPasses(t *testing.T) {
	start, stop := plan.Step{Kind: plan.StartContainer}, plan.Step{Kind: plan.StopContainer}
	for name, c := range map[string]struct {
		plans [][]plan.Step
		want  int
	}{
		"no steps":         {[][]plan.Step{nil}, 0},
		"a start":          {[][]plan.Step{{stop, start}}, 0},
		"only stops":       {[][]plan.Step{{stop}}, 1},
		"the same again":   {[][]plan.Step{{stop}, {stop}}, 1},
		"a start after it": {[][]plan.Step{{stop}, {start}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			posted := make(inbox, 2)
			m := &passMaker{loopState: &loopState{inbox: posted}}
			note := m.notePlans(t.Context(), model.PodRef{UID: "a"})
			for _, steps := range c.plans {
				note(&plan.Plan{Steps: steps})
			}
			if len(posted) != c.want {
				t.Errorf("%d changes, want %d", len(posted), c.want)
			}
		})
	}
}
