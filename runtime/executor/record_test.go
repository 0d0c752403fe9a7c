package executor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/state"
)

// written returns the events that a recorder adds to the history of a pod.
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

// TestEventsOfTheKubelet checks that a step is recorded in the kubelet's words, when it begins and when it is done.
// Some steps cause no event.
func TestEventsOfTheKubelet(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	stop := func(reason model.Reason) plan.Step {
		return plan.Step{Kind: plan.StopContainer, Container: "a", ContainerID: "id", Reason: reason, Message: "details"}
	}
	start := plan.Step{Kind: plan.StartContainer, Container: "a", Image: "i:1", Attempt: 2}
	for name, c := range map[string]struct {
		step plan.Step
		// others are steps of the same plan.
		others []plan.Step
		want   []string
	}{
		"pull": {
			plan.Step{Kind: plan.PullImage, Container: "a", Image: "i:1"},
			nil,
			[]string{`Normal Pulling a: Pulling image "i:1"`, `Normal Pulled a: Successfully pulled image "i:1" in 1.5s`},
		},
		"the pod goes":      {stop(model.Deleted), nil, []string{"Normal Killing a: Stopping container a"}},
		"another sandbox":   {stop(model.NoIP), nil, []string{"Normal Killing a: Stopping container a"}},
		"the user's wish":   {stop(model.RestartRequested), nil, []string{"Normal Killing a: Stopping container a: details"}},
		"the first sandbox": {plan.Step{Kind: plan.RunSandbox}, nil, []string{"Normal SandboxCreated: Pod sandbox created, attempt 0"}},
		"a new sandbox": {
			plan.Step{Kind: plan.RunSandbox, Attempt: 1},
			nil,
			[]string{
				"Normal SandboxChanged: Pod sandbox changed, it will be killed and re-created.",
				"Normal SandboxCreated: Pod sandbox created, attempt 1",
			},
		},
		"start": {start, []plan.Step{{Kind: plan.PullImage, Container: "b", Image: "i:1"}}, []string{
			`Normal Pulled a: Container image "i:1" already present on machine and can be accessed by the pod`,
			"Normal Created a: Container created", "Normal Started a: Container started",
		}},
		"start after a pull": {
			start,
			[]plan.Step{{Kind: plan.PullImage, Container: "a", Image: "i:1"}},
			[]string{"Normal Created a: Container created", "Normal Started a: Container started"},
		},
		"resize": {
			plan.Step{Kind: plan.UpdateContainer, Container: "a", Message: "cpu 1 → 2"},
			nil,
			[]string{"Normal ResizeCompleted a: cpu 1 → 2"},
		},
		"no news":   {plan.Step{Kind: plan.PrepareVolume, Volume: "v"}, nil, []string{}},
		"a removal": {plan.Step{Kind: plan.RemoveContainer, Container: "a"}, nil, []string{}},
	} {
		r, p := &events.Recorder{}, &plan.Plan{Steps: append(c.others, c.step)}
		recordStep(r, p, nil, &Event{Kind: StepStarted, Step: &c.step, Time: at})
		recordStep(r, p, nil, &Event{Kind: StepProgress, Step: &c.step, Time: at})
		recordStep(r, p, nil, &Event{Kind: StepDone, Step: &c.step, Time: at.Add(1500 * time.Millisecond), Took: 1500 * time.Millisecond})
		if diff := cmp.Diff(c.want, eventTexts(written(t, r).Events)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestFailureEventsOfTheKubelet checks that each failure has the kubelet's reason and text. Surprises and canceled
// steps are not failures, except a canceled hook.
func TestFailureEventsOfTheKubelet(t *testing.T) {
	cause := errors.New("injected failure")
	image := plan.Step{Kind: plan.PullImage, Container: "a", Image: "i:1"}
	a := plan.Step{Kind: plan.StartContainer, Container: "a"}
	hook := func(err error) error {
		return hookError(&hookFailure{handler: &v1.LifecycleHandler{}, err: err})
	}
	for name, c := range map[string]struct {
		step plan.Step
		err  error
		want []string
	}{
		"sandbox": {
			plan.Step{Kind: plan.RunSandbox},
			cause,
			[]string{"Warning FailedCreatePodSandBox: Failed to create pod sandbox: injected failure"},
		},
		"mount": {
			plan.Step{Kind: plan.PrepareVolume, Volume: "v"},
			&model.KubeletError{Err: cause, Text: "as a kubelet says it"},
			[]string{"Warning FailedMount: as a kubelet says it"},
		},
		"volume": {
			plan.Step{Kind: plan.UpdateVolume, Volume: "v"},
			cause,
			[]string{`Warning FailedMount: MountVolume.SetUp failed for volume "v" : injected failure`},
		},
		"cgroup": {
			plan.Step{Kind: plan.CreateCgroup},
			cause,
			[]string{"Warning FailedCreatePodContainer: unable to ensure pod container exists: injected failure"},
		},
		"stop": {
			plan.Step{Kind: plan.StopContainer, Container: "a"},
			cause,
			[]string{"Warning FailedKillPod a: error killing pod: injected failure"},
		},
		"pull": {
			image,
			pullReason(&images.Error{Reason: images.ErrImagePull, Image: "i:1", Hint: "do this", Err: cause}),
			[]string{
				`Warning Failed a: Failed to pull image "i:1": injected failure`,
				"Warning Failed a: Error: ErrImagePull",
			},
		},
		"name": {
			image,
			pullReason(&images.Error{
				Reason:  images.InvalidImageName,
				Invalid: true,
				Image:   "i:1",
				Hint:    "do this",
				Err:     cause,
			}),
			[]string{
				`Warning InspectFailed a: Failed to apply default image tag "i:1": ` +
					`couldn't parse image name "i:1": injected failure`,
				"Warning Failed a: Error: InvalidImageName",
			},
		},
		"check": {
			plan.Step{Kind: plan.CheckContainer, Container: "a"},
			model.WithReason(model.CreateContainerConfigError, cause),
			[]string{"Warning Failed a: Error: injected failure"},
		},
		"create": {a, model.WithReason(model.CreateContainerError, cause), []string{"Warning Failed a: Error: injected failure"}},
		"start":  {a, startError(cause), []string{"Normal Created a: Container created", "Warning Failed a: Error: injected failure"}},
		"postStart": {a, hook(cause), []string{
			"Normal Created a: Container created", "Normal Started a: Container started",
			"Warning FailedPostStartHook a: PostStartHook failed: injected failure", "Normal Killing a: FailedPostStartHook",
		}},
		"interrupted": {a, startError(context.Canceled), []string{}},
		"interrupted hook": {a, hook(context.Canceled), []string{
			"Normal Created a: Container created", "Normal Started a: Container started",
			"Warning FailedPostStartHook a: PostStartHook failed: context canceled", "Normal Killing a: FailedPostStartHook",
		}},
	} {
		r := &events.Recorder{}
		failure := stepError(model.PodRef{}, &c.step, c.err)
		recordStep(r, &plan.Plan{}, nil, &Event{Kind: StepFailed, Step: &c.step, Err: &failure})
		if diff := cmp.Diff(c.want, eventTexts(written(t, r).Events)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	r := &events.Recorder{}
	stop := &plan.Step{Kind: plan.StopContainer}
	recordStep(r, &plan.Plan{}, nil, &Event{Kind: StepFailed, Step: stop, Err: &StateChangedError{err: cause}})
	if got := eventTexts(written(t, r).Events); len(got) > 0 {
		t.Errorf("a StateChangedError is recorded as %v", got)
	}
	// No pull begins for an invalid name.
	recordStep(r, &plan.Plan{}, nil, &Event{Kind: StepStarted, Step: &plan.Step{Kind: plan.PullImage, Image: "I:::"}})
	if got := eventTexts(written(t, r).Events); len(got) > 0 {
		t.Errorf("events for an invalid image name: %v", got)
	}
}

// TestFailureTextsOfTheKubelet checks that a pod's status has the kubelet's text, without the output of a hook's
// command.
func TestFailureTextsOfTheKubelet(t *testing.T) {
	ref := podspec.ContainerRef{Container: &v1.Container{Name: "a"}}
	hook := func(h v1.LifecycleHandler) error {
		return hookError(&hookFailure{
			pod:     model.PodRef{Namespace: "ns", Name: "web", UID: "u"},
			ref:     ref,
			handler: &h,
			err:     errors.New("injected failure"),
		})
	}
	for want, err := range map[string]error{
		`Exec lifecycle hook ([false x]) for Container "a" in Pod "web_ns(u)" failed - error: injected failure`: hook(
			v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"false", "x"}}}),
		`HTTP lifecycle hook (/p) for Container "a" in Pod "web_ns(u)" failed - error: injected failure`: hook(
			v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/p"}}),
		`Sleep lifecycle hook (3) for Container "a" in Pod "web_ns(u)" failed - error: injected failure`: hook(
			v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 3}}),
		"Cannot run handler: injected failure": hook(v1.LifecycleHandler{}),
		"injected failure":                     startError(errors.New("injected failure")),
		"as a kubelet says it":                 fmt.Errorf("spec.containers[0].%w", model.KubeletErrorf("as a kubelet says it")),
	} {
		if got := kubeletText(err); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestSpansOfAStart checks that only the durations of the parts of a start are recorded, whether it failed or not.
func TestSpansOfAStart(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	start, stop := &plan.Step{Kind: plan.StartContainer, Container: "a"}, &plan.Step{Kind: plan.StopContainer, Container: "a"}
	r := &events.Recorder{}
	for _, s := range []*plan.Step{start, stop} {
		recordStep(r, &plan.Plan{}, nil, &Event{Kind: StepDone, Step: s, Time: at, Took: time.Second})
		recordStep(r, &plan.Plan{}, nil, &Event{
			Kind: StepFailed,
			Step: s,
			Time: at.Add(time.Minute),
			Took: time.Minute,
			Err:  &StateChangedError{err: errors.New("x")},
		})
	}
	want := []state.Span{
		{Kind: "StartContainer", Object: start.Object(), Begin: at.Add(-time.Second), End: at},
		{Kind: "StartContainer", Object: start.Object(), Begin: at, End: at.Add(time.Minute), Failed: true},
	}
	if diff := cmp.Diff(want, written(t, r).Spans); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestHoldsAreEvents checks the kubelet's events for held containers and for a pod past its deadline.
func TestHoldsAreEvents(t *testing.T) {
	r := &events.Recorder{}
	recordPlan(r, time.Now(), &plan.Plan{
		Pod: model.PodRef{Namespace: "ns", Name: "web", UID: "u"},
		Steps: []plan.Step{
			{Kind: plan.StopContainer, Reason: model.DeadlineExceeded},
			{Kind: plan.StopSandbox, Reason: model.DeadlineExceeded},
		},
		Holds: []plan.Hold{
			{Container: "a", Reason: model.CrashLoopBackOff, Message: "back-off 10s"},
			{Reason: model.NetworkNotReady, Message: "cni plugin not initialized"},
			{Container: "b", Reason: model.ErrImageNeverPull, Message: "image i:1 is not present"},
			{Container: "c", Reason: model.CreateContainerConfigError, Message: "secret s is missing"},
			{Container: "d", Reason: model.FailedMount, Message: "secret v is missing"},
			{Container: "d", Reason: model.FailedMount, Status: "of the API server", MissingObject: true},
			{Container: "d", Reason: model.CreateContainerConfigError, Status: "of the API server, too", MissingObject: true},
			{Reason: model.CreatePodSandboxError, Message: "no handler"},
			{Container: "e", Reason: model.InvalidImageName, Message: "no name"},
			{Reason: model.AppArmor, Message: "no profile"},
			{Reason: model.HostPortConflict, Message: "80 is taken"},
		},
	})
	want := []string{
		"Normal DeadlineExceeded: Pod was active on the node longer than the specified deadline",
		"Warning BackOff a: Back-off restarting failed container a in pod web_ns(u)",
		"Warning NetworkNotReady: network is not ready: container runtime network not ready: cni plugin not initialized",
		"Warning ErrImageNeverPull b: image i:1 is not present",
		"Warning Failed b: Error: ErrImageNeverPull",
		"Warning Failed c: Error: secret s is missing",
		"Warning FailedMount d: secret v is missing",
		"Warning FailedMount: of the API server",
		"Warning Failed d: Error: of the API server, too",
		"Warning FailedCreatePodSandBox: Failed to create pod sandbox: no handler",
		"Warning InspectFailed e: no name",
		"Warning Failed e: Error: InvalidImageName",
		"Warning AppArmor: no profile",
		"Warning Failed: Error: HostPortConflict: 80 is taken",
	}
	if diff := cmp.Diff(want, eventTexts(written(t, r).Events)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestRestartDelayIsOneEvent checks that a restart delay is one event while it lasts, and that the next delay is
// another.
func TestRestartDelayIsOneEvent(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	kept := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}.Pod("u")
	for _, c := range []struct {
		now   time.Duration
		until time.Duration
		want  int
	}{
		{time.Second, 10 * time.Second, 1},
		{2 * time.Second, 10 * time.Second, 1},
		{30 * time.Second, 45 * time.Second, 2},
		{31 * time.Second, 45 * time.Second, 2},
	} {
		r := &events.Recorder{}
		recordPlan(r, at.Add(c.now), &plan.Plan{Holds: []plan.Hold{{
			Container: "a", Reason: model.CrashLoopBackOff, Delay: &podstatus.Delay{Duration: 20 * time.Second, Until: at.Add(c.until)},
		}}})
		if err := r.Write(kept, model.PodRef{UID: "u"}, nil); err != nil {
			t.Fatal(err)
		}
		if h, err := kept.History().Read(); err != nil || len(h.Events) != 1 || h.Events[0].Count != c.want {
			t.Errorf("at %s: %+v, %v", c.now, h, err)
		}
	}
}

// TestDecisions checks that steps that change what runs, failures, drift and holds are recorded with the plan's reasons.
// A restart delay is recorded once while it lasts, and other holds once a minute.
func TestDecisions(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	r := &events.Recorder{}
	start := &plan.Step{
		Kind: plan.StartContainer, Container: "a", Attempt: 2, Reason: model.ContainerExited, Message: "exited 1 3s ago",
	}
	pull := &plan.Step{Kind: plan.PullImage, Container: "a", Image: "i:1", Reason: model.ImageAbsent, Message: "not present"}
	p := &plan.Plan{ObservedAt: at, Steps: []plan.Step{*start}, Drift: []string{"container a is gone"}, Holds: []plan.Hold{
		{Container: "b", Reason: model.CrashLoopBackOff, Delay: &podstatus.Delay{Until: at.Add(time.Hour), Duration: time.Hour}},
		{Reason: model.NetworkNotReady, Message: "cni"},
	}}
	recordDrift(r, p)
	recordDrift(r, &plan.Plan{Drift: []string{"nothing repairs this"}})
	for _, s := range []*plan.Step{start, pull} {
		recordStep(r, p, nil, &Event{Kind: StepDone, Step: s, Time: at})
	}
	recordStep(r, p, nil, &Event{Kind: StepFailed, Step: pull, Time: at, Err: &StepError{Step: pull, Err: errors.New("no route")}})
	for _, later := range []time.Duration{0, 30 * time.Second, 2 * time.Minute} {
		recordHolds(r, at.Add(later), p)
	}
	var got []string
	for _, d := range written(t, r).Decisions {
		got = append(got, fmt.Sprintf("%s %s/%d %s: %s, error %q, x%d", d.Kind, d.Container, d.Attempt, d.Reason, d.Message, d.Error, d.Count))
	}
	want := []string{
		`Drift /0 : container a is gone, error "", x1`,
		`StartContainer a/2 Exited: exited 1 3s ago, error "", x1`,
		`PullImage a/0 ImageAbsent: not present, error "no route", x1`,
		`Hold b/0 CrashLoopBackOff: , error "", x1`,
		`Hold /0 NetworkNotReady: cni, error "", x2`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
