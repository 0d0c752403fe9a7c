package executor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// written is what a recorder adds to the history of a pod.
func written(t *testing.T, r *events.Recorder) *state.History {
	t.Helper()
	kept := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}.Pod("u")
	if err := r.Write(kept, model.PodRef{UID: "u"}, nil); err != nil {
		t.Fatal(err)
	}
	h, err := kept.History().Read()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestEventsAreTheKubelets: what a step does is told in the kubelet's words, once as it begins
// and once when it is done. What is no news is not told.
func TestEventsAreTheKubelets(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		step plan.Step
		want []string
	}{
		"pull": {
			plan.Step{Kind: plan.PullImage, Container: "a", Image: "i:1"},
			[]string{`Normal Pulling a: Pulling image "i:1"`, `Normal Pulled a: Successfully pulled image "i:1" in 1.5s`},
		},
		"stop":              {plan.Step{Kind: plan.StopContainer, Container: "a"}, []string{"Normal Killing a: Stopping container a"}},
		"stop for a reason": {plan.Step{Kind: plan.StopContainer, Container: "a", Message: "image changed"}, []string{"Normal Killing a: Stopping container a: image changed"}},
		"the first sandbox": {plan.Step{Kind: plan.RunSandbox}, []string{"Normal SandboxCreated: Pod sandbox created, attempt 0"}},
		"a new sandbox": {
			plan.Step{Kind: plan.RunSandbox, Attempt: 1},
			[]string{"Normal SandboxChanged: Pod sandbox changed, it will be killed and re-created.", "Normal SandboxCreated: Pod sandbox created, attempt 1"},
		},
		"start": {
			plan.Step{Kind: plan.StartContainer, Container: "a", Attempt: 2},
			[]string{"Normal Created a: Container created, attempt 2", "Normal Started a: Container started"},
		},
		"resize":    {plan.Step{Kind: plan.UpdateContainer, Container: "a", Message: "cpu 1 → 2"}, []string{"Normal ResizeCompleted a: cpu 1 → 2"}},
		"no news":   {plan.Step{Kind: plan.PrepareVolume, Volume: "v"}, []string{}},
		"a removal": {plan.Step{Kind: plan.RemoveContainer, Container: "a"}, []string{}},
	} {
		r := &events.Recorder{}
		recordStep(r, &Event{Kind: StepStarted, Step: &c.step, Time: at})
		recordStep(r, &Event{Kind: StepProgress, Step: &c.step, Time: at})
		recordStep(r, &Event{Kind: StepDone, Step: &c.step, Time: at.Add(1500 * time.Millisecond), Took: 1500 * time.Millisecond})
		if diff := cmp.Diff(c.want, eventTexts(written(t, r).Events)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestFailuresAreTheKubelets: each failure has the kubelet's reason. What the user ended is none,
// unless a hook was ended by it, and neither is a surprise.
func TestFailuresAreTheKubelets(t *testing.T) {
	cause := errors.New("told to fail")
	a := plan.Step{Kind: plan.StartContainer, Container: "a"}
	for name, c := range map[string]struct {
		step   plan.Step
		reason string
		err    error
		want   []string
	}{
		"sandbox":          {plan.Step{Kind: plan.RunSandbox}, "CreatePodSandboxError", cause, []string{"Warning FailedCreatePodSandBox: Error: CreatePodSandboxError: told to fail"}},
		"volume":           {plan.Step{Kind: plan.UpdateVolume, Volume: "v"}, "FailedMount", cause, []string{"Warning FailedMount: Volume v: told to fail"}},
		"cgroup":           {plan.Step{Kind: plan.CreateCgroup}, "FailedCreatePodContainer", cause, []string{"Warning FailedCreatePodContainer: Error: FailedCreatePodContainer: told to fail"}},
		"stop":             {plan.Step{Kind: plan.StopContainer, Container: "a"}, "KillContainerError", cause, []string{"Warning FailedKillPod a: Error: KillContainerError: told to fail"}},
		"start":            {a, "RunContainerError", cause, []string{"Warning Failed a: Error: RunContainerError: told to fail"}},
		"postStart":        {a, "PostStartHookError", cause, []string{"Warning FailedPostStartHook a: Error: PostStartHookError: told to fail"}},
		"interrupted":      {a, "RunContainerError", context.Canceled, []string{}},
		"interrupted hook": {a, "PostStartHookError", context.Canceled, []string{"Warning FailedPostStartHook a: Error: PostStartHookError: context canceled"}},
	} {
		r := &events.Recorder{}
		recordStep(r, &Event{Kind: StepFailed, Step: &c.step, Err: &StepError{Step: &c.step, Reason: model.Reason(c.reason), Stopped: c.reason == "PostStartHookError", Err: c.err}})
		if diff := cmp.Diff(c.want, eventTexts(written(t, r).Events)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	r := &events.Recorder{}
	recordStep(r, &Event{Kind: StepFailed, Step: &plan.Step{Kind: plan.StopContainer}, Err: &SurpriseError{err: cause}})
	if got := eventTexts(written(t, r).Events); len(got) > 0 {
		t.Errorf("a surprise is told as %v", got)
	}
}

// TestSpansOfAStart: the time of what a start consists of is kept, whether it failed or not,
// and nothing else's.
func TestSpansOfAStart(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	start, stop := &plan.Step{Kind: plan.StartContainer, Container: "a"}, &plan.Step{Kind: plan.StopContainer, Container: "a"}
	r := &events.Recorder{}
	for _, s := range []*plan.Step{start, stop} {
		recordStep(r, &Event{Kind: StepDone, Step: s, Time: at, Took: time.Second})
		recordStep(r, &Event{Kind: StepFailed, Step: s, Time: at.Add(time.Minute), Took: time.Minute, Err: &SurpriseError{err: errors.New("x")}})
	}
	want := []state.Span{
		{Kind: "StartContainer", Object: start.Object(), Begin: at.Add(-time.Second), End: at},
		{Kind: "StartContainer", Object: start.Object(), Begin: at, End: at.Add(time.Minute), Failed: true},
	}
	if diff := cmp.Diff(want, written(t, r).Spans); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestHoldsAreEvents: what is not started now has the kubelet's event for it.
func TestHoldsAreEvents(t *testing.T) {
	r := &events.Recorder{}
	recordHolds(r, time.Now(), &plan.Plan{Pod: model.PodRef{Namespace: "ns", Name: "web"}, Holds: []plan.Hold{
		{Container: "a", Reason: model.CrashLoopBackOff, Message: "back-off 10s"},
		{Reason: model.NetworkNotReady, Message: "cni plugin not initialized"},
		{Container: "b", Reason: model.ErrImageNeverPull, Message: "image i:1 is not present"},
		{Container: "c", Reason: model.CreateContainerConfigError, Message: "secret s is missing"},
		{Reason: model.FailedMount, Message: "no directory"},
		{Reason: model.CreatePodSandboxError, Message: "no handler"},
		{Container: "d", Reason: model.InvalidImageName, Message: "no name"},
	}})
	want := []string{
		"Warning BackOff a: Back-off restarting failed container a in pod ns/web",
		"Warning NetworkNotReady: cni plugin not initialized",
		"Warning ErrImageNeverPull b: image i:1 is not present",
		"Warning Failed c: Error: CreateContainerConfigError: secret s is missing",
		"Warning FailedMount: no directory",
		"Warning FailedCreatePodSandBox: no handler",
		"Warning InspectFailed d: no name",
	}
	if diff := cmp.Diff(want, eventTexts(written(t, r).Events)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
