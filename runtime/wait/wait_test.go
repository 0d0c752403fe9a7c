package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/syncpod"
)

// TestReachedInTimeIfOnlyJust checks a timeout at the moment at which the goal is reached.
func TestReachedInTimeIfOnlyJust(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-ctx.Done()
	if err := (&podWait{goal: Ready}).translate(ctx, nil); err != nil {
		t.Error(err)
	}
}

// TestErrorsOfWaits checks that errors name the pod and the goal once, with the cause.
func TestErrorsOfWaits(t *testing.T) {
	cause := errors.New("pod ns/web: container a: no space")
	ref := model.PodRef{Namespace: "ns", Name: "web"}
	blocked := &BlockedError{Pod: ref, Goal: Ready, Reason: cause.Error(), Err: cause}
	if blocked.Error() != "pod ns/web cannot become ready: container a: no space" || !errors.Is(blocked, cause) {
		t.Error(blocked)
	}
	late := &TimeoutError{Pod: ref, Goal: "condition=X", Missing: "pod ns/web: a to end"}
	if late.Error() != "pod ns/web is not condition=X in time: a to end" {
		t.Error(late)
	}
}

// TestEndsOfTheTime checks that the error contains what was missing, or otherwise the failure. It includes a lock that
// another process holds.
func TestEndsOfTheTime(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-over.Done()
	interrupted, end := context.WithCancel(t.Context())
	end()
	failed := errors.New("injected failure")
	for name, c := range map[string]struct {
		ctx     context.Context //nolint:containedctx // a case
		waiting []string
		err     error
		want    string
	}{
		"with words":      {over, []string{"a to end", "b to end"}, over.Err(), "pod default/web is not ready in time: a to end; b to end"},
		"without words":   {over, nil, failed, "pod default/web is not ready in time: injected failure"},
		"interrupted":     {interrupted, []string{"a to end"}, failed, "injected failure"},
		"the wait failed": {t.Context(), []string{"a to end"}, failed, "injected failure"},
		"the pod is locked": {
			t.Context(),
			nil,
			&filelock.LockedError{What: "pod default/web", Err: failed},
			"pod default/web is not ready in time: it ",
		},
		"locked, ended": {interrupted, nil, &filelock.LockedError{What: "pod default/web", Err: failed}, "pod default/web is in use by"},
	} {
		w, _ := at(time.Now(), loadPod(t, onePod()), Ready)
		w.missing = c.waiting
		if err := w.translate(c.ctx, c.err); !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestUnreachableRuntimesEndWaits checks that a runtime that has answered before gets a minute. An error in its answer
// ends the wait, and so does a runtime that never answered.
func TestUnreachableRuntimesEndWaits(t *testing.T) {
	gone := error(&cri.UnavailableError{Reason: "away"})
	now := time.Now()
	for name, c := range map[string]struct {
		answered, failingSince time.Time
		err                    error
		want                   bool
	}{
		"the runtime may come back":  {now.Add(-time.Second), time.Time{}, gone, true},
		"one call took its time":     {now.Add(-cri.RetryTime - time.Second), time.Time{}, gone, true},
		"wrapped":                    {now.Add(-time.Second), now.Add(-time.Second), fmt.Errorf("observing: %w", gone), true},
		"the runtime is gone":        {now.Add(-2 * cri.RetryTime), now.Add(-cri.RetryTime - time.Second), gone, false},
		"the runtime never answered": {time.Time{}, time.Time{}, gone, false},
		"the runtime answered":       {now, time.Time{}, errors.New("injected failure"), false},
		"the wait is over":           {now, time.Time{}, &BlockedError{Err: gone}, false},
		"nothing went wrong":         {time.Time{}, now, nil, false},
	} {
		w, _ := at(now, loadPod(t, onePod()), Ready)
		w.answered, w.failingSince = c.answered, c.failingSince
		if got := w.retryable(t.Context(), c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		if c.want && !slices.Equal(w.missing, []string{gone.Error()}) {
			t.Errorf("%s: waiting for %q", name, w.missing)
		}
		if c.err == nil && (!w.answered.Equal(now) || !w.failingSince.IsZero()) {
			t.Errorf("%s: it answered %v", name, w.answered)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w, _ := at(now, loadPod(t, onePod()), Ready)
	w.answered = now
	if w.retryable(ctx, gone) {
		t.Error("a wait that was ended continues")
	}
}

// failure returns the outcome of a pass in which a step of container a failed.
func failure(reason model.Reason, err error) *executor.Outcome {
	return &executor.Outcome{Plan: &plan.Plan{}, Failed: []executor.StepError{{Step: &plan.Step{Container: "a"}, Reason: reason, Err: err}}}
}

// startFailure returns the outcome of a pass in which the start of container a failed.
func startFailure(err error) *executor.Outcome {
	outcome := failure(model.RunContainerError, err)
	outcome.Failed[0].Retryable = true
	return outcome
}

// TestFailuresThatPass checks that a registry that cannot be reached is retried after growing pauses, and so is a start
// that is retried by itself. Other failures end the wait.
func TestFailuresThatPass(t *testing.T) {
	cause := errors.New("injected failure")
	for name, c := range map[string]struct {
		text   string
		goal   Goal
		failed *executor.Outcome
		ends   bool
	}{
		"a registry":                  {onePod(), Ready, failure("ErrImagePull", &images.Error{Passing: true, Err: cause}), false},
		"no such image":               {onePod(), Ready, failure("ErrImagePull", &images.Error{Err: cause}), true},
		"a start":                     {onePod(), Ready, startFailure(cause), false},
		"a start that is not retried": {never(onePod()), Ready, startFailure(cause), true},
		"an end is any end":           {never(onePod()), Completed, startFailure(cause), false},
		"a configuration":             {onePod(), Ready, failure("CreateContainerConfigError", cause), true},
		"a sandbox":                   {onePod(), Ready, failure("CreatePodSandboxError", cause), true},
		"the runtime is away":         {onePod(), Ready, startFailure(&cri.UnavailableError{Reason: "away"}), false},
	} {
		w, _ := at(time.Now(), loadPod(t, c.text), c.goal)
		err := w.failed(c.failed)
		if blocked := (*BlockedError)(nil); errors.As(err, &blocked) != c.ends {
			t.Errorf("%s: %v", name, err)
		}
		if !c.ends && len(w.trouble) != 1 {
			t.Errorf("%s: trouble %q", name, w.trouble)
		}
		if err = w.failed(&executor.Outcome{}); err != nil || w.tries+w.unanswered > 0 || w.trouble != nil || !w.retryAt.IsZero() {
			t.Errorf("%s: after all is well: %+v, %v", name, w, err)
		}
	}
}

// TestPausesOfRegistries checks that the pause is ten seconds at first, doubles each time, and is at most five minutes.
func TestPausesOfRegistries(t *testing.T) {
	now := time.Now()
	w, _ := at(now, loadPod(t, onePod()), Ready)
	for i, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300, 300} {
		if err := w.failed(failure("ErrImagePull", &images.Error{Passing: true})); err != nil || w.retryAt.Sub(now) != want*time.Second {
			t.Errorf("pause %d: %v, want %v, %v", i, w.retryAt.Sub(now), want*time.Second, err)
		}
	}
}

// TestRuntimesThatAnswerHalf checks how many passes in a row may fail because the runtime does not answer, although it
// answers in between. Any other failure resets the count.
func TestRuntimesThatAnswerHalf(t *testing.T) {
	away := startFailure(&cri.UnavailableError{Reason: "away"})
	w, _ := at(time.Now(), loadPod(t, onePod()), Ready)
	for range UnansweredMax - 1 {
		if err := w.failed(away); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.failed(startFailure(errors.New("injected failure"))); err != nil {
		t.Fatal(err)
	}
	for i := range UnansweredMax {
		err := w.failed(away)
		if ends := i == UnansweredMax-1; errors.As(err, new(*BlockedError)) != ends {
			t.Errorf("pass %d: %v", i+1, err)
		}
	}
}

// TestNoPassBeforeItsTime checks that no pass is made during the pause for a registry, and that the last outcome
// counts.
func TestNoPassBeforeItsTime(t *testing.T) {
	w, _ := at(time.Now(), loadPod(t, onePod()), Ready)
	w.last, w.retryAt = &executor.Outcome{}, time.Now().Add(time.Hour)
	if outcome, err := w.apply(t.Context()); err != nil || outcome != w.last {
		t.Errorf("%v, %v", outcome, err)
	}
}

// TestPausesOfPullsAreShown checks that the pod's status and events show the pause in the kubelet's words.
func TestPausesOfPullsAreShown(t *testing.T) {
	l := newLab(t)
	l.server.Fail(runtimetest.Fault{Method: "PullImage", Times: 1, Err: errors.New("dial tcp: connection refused")})
	d := loadPod(t, onePod())
	w := l.waiter(d, Ready)
	if _, err := w.apply(t.Context()); err != nil || len(w.trouble) != 1 {
		t.Fatal(err, w.trouble)
	}
	in, s, err := l.observer.Input(t.Context(), model.RefOf(d.Pod), d, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	status := podstatus.Of(in.State())
	waits := status.ContainerStatuses[0].State.Waiting
	if waits == nil || waits.Reason != "ImagePullBackOff" ||
		!strings.HasPrefix(waits.Message, `Back-off pulling image "i:1": ErrImagePull: `) {
		t.Errorf("the status is %+v", waits)
	}
	if until := s.Checkpoint.StartErrors["a"].Until; !until.Equal(w.retryAt) {
		t.Errorf("it pauses until %s, but the status has %s", w.retryAt, until)
	}
	h, err := l.layout.Pod(d.Pod.UID).History().Read()
	if err != nil || !slices.ContainsFunc(h.Events, func(e state.PodEvent) bool {
		return e.Reason == "BackOff" && e.Message == `Back-off pulling image "i:1"`
	}) {
		t.Errorf("%v, %+v", err, h)
	}
}

// TestWaits checks how many passes each goal needs.
func TestWaits(t *testing.T) {
	inits := pod("  initContainers: [{name: i, image: 'i:1'}]\n  containers: [{name: a, image: 'i:1'}]\n")
	probed := strings.Replace(onePod(), "image: 'i:1'",
		"image: 'i:1', startupProbe: {exec: {command: [x]}}, readinessProbe: {exec: {command: [x]}}", 1)
	short := runtimetest.Behaviour{After: 20 * time.Millisecond}
	for name, c := range map[string]struct {
		text   string
		goal   Goal
		behave map[string]runtimetest.Behaviour
	}{
		"started": {inits, Started, map[string]runtimetest.Behaviour{"i": short}}, "ready": {probed, Ready, nil},
		"completed": {never(inits), Completed, map[string]runtimetest.Behaviour{"i": short, "a": short}},
		"failed":    {never(onePod()), Completed, map[string]runtimetest.Behaviour{"a": {After: 20 * time.Millisecond, ExitCode: 1}}},
	} {
		l := newLab(t, "i:1")
		for container, b := range c.behave {
			l.server.Behave(container, b)
		}
		d := loadPod(t, c.text)
		outcome, err := l.Wait(t.Context(), d, c.goal, executor.Options{})
		if failed := (*FailedError)(nil); errors.As(err, &failed) != (name == "failed") ||
			(err != nil && failed == nil) || outcome.Err() != nil {
			t.Fatal(name, err)
		}
		in, _, err := l.observer.Input(t.Context(), model.RefOf(d.Pod), d, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		status := podstatus.Of(in.State())
		if !l.waiter(d, c.goal).reached(&status) || plan.Make(in).Pending() {
			t.Errorf("%s: %+v", name, status)
		}
		if d.Stored {
			t.Errorf("%s: the caller's manifest was changed", name)
		}
	}
}

// TestFinalFailuresEndWaits checks that a container that failed for good, an image that does not exist and a runtime
// that refuses end a wait with the cause.
func TestFinalFailuresEndWaits(t *testing.T) {
	for want, c := range map[string]struct {
		text    string
		prepare func(*lab)
	}{
		"container a has exited 3 and is not restarted": {
			never(pod("  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:1'}]\n")),
			func(l *lab) { l.server.Behave("a", runtimetest.Behaviour{After: time.Millisecond, ExitCode: 3}) },
		},
		"ErrImagePull": {strings.Replace(onePod(), "i:1", "absent.local/i:1", 1), func(*lab) {}},
		"injected failure": {onePod(), func(l *lab) {
			l.server.Fail(runtimetest.Fault{Method: "CreateContainer", Times: 1, Err: errors.New("injected failure")})
		}},
	} {
		l := newLab(t, "i:1")
		c.prepare(l)
		_, err := l.Wait(t.Context(), loadPod(t, c.text), Ready, executor.Options{})
		if blocked := (*BlockedError)(nil); !errors.As(err, &blocked) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestTimeoutOfWaits checks that the error after a timeout lists the conditions that were not met.
func TestTimeoutOfWaits(t *testing.T) {
	l := newLab(t, "i:1")
	l.server.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse {
		return &runtimeapi.ExecSyncResponse{ExitCode: 1, Stderr: []byte("not yet")}
	})
	ctx := l.server.ExpireAt(t.Context(), "ExecSync", "ListContainers", 10)
	text := strings.Replace(onePod(), "image: 'i:1'", "image: 'i:1', readinessProbe: {exec: {command: [x]}}", 1)
	_, err := l.Wait(ctx, loadPod(t, text), Ready, executor.Options{})
	if late := (*TimeoutError)(nil); !errors.As(err, &late) ||
		!strings.Contains(err.Error(), "readiness probe of a: exit code 1: not yet") {
		t.Errorf("error %v", err)
	}
}

// TestWaitsOfOthers checks that another process may change or delete the pod once it was applied. The wait then ends
// and does not undo the change.
func TestWaitsOfOthers(t *testing.T) {
	l := newLab(t, "i:1", "i:2")
	d := loadPod(t, onePod())
	w := l.waiter(d, Ready)
	if _, _, err := w.pass(t.Context()); err != nil || !w.desired.Stored || w.answered.IsZero() {
		t.Fatal(err, w.desired.Stored, w.answered)
	}
	if seen, err := w.look(t.Context()); err != nil || seen != w.seen {
		t.Errorf("observed %s, the pass has seen %s, %v", seen, w.seen, err)
	}
	l.apply(loadPod(t, strings.Replace(onePod(), "i:1", "i:2", 1)))
	for name, retryAt := range map[string]time.Time{"a pass": {}, "no pass, as a registry is given time": time.Now().Add(time.Hour)} {
		w.retryAt = retryAt
		if _, _, err := w.pass(t.Context()); !errors.As(err, new(*syncpod.SupersededError)) {
			t.Errorf("%s after another manifest: %v", name, err)
		}
	}
}

// TestWaitsOutlastTheRuntime checks that a runtime that does not answer for a moment is retried if it has answered
// before. A wait that begins without it ends at once.
func TestWaitsOutlastTheRuntime(t *testing.T) {
	for lost, outlasts := range map[int]bool{1: false, 2: true, 3: true} {
		l := newLab(t, "i:1")
		asked := 0
		restarting := status.Error(codes.Unavailable, "restarting")
		l.server.Fail(runtimetest.Fault{Method: "ListPodSandbox", Times: 1, Err: restarting, Only: func(any) bool {
			asked++
			return asked == lost
		}})
		l.server.Behave("a", runtimetest.Behaviour{After: 20 * time.Millisecond})
		_, err := l.Wait(t.Context(), loadPod(t, never(onePod())), Completed, executor.Options{})
		if (err == nil) != outlasts || (err != nil && !errors.As(err, new(*cri.UnavailableError))) || asked < lost {
			t.Errorf("lost at question %d: %v after %d", lost, err, asked)
		}
	}
}

// TestAPassWithoutChangesIsObservedOnce checks that the wait uses the observation of a pass that finds nothing to do if
// no probe is due. If a probe is due, its round observes the pod, too.
func TestAPassWithoutChangesIsObservedOnce(t *testing.T) {
	l := newLab(t, "i:1")
	observed := 0
	l.server.Fail(runtimetest.Fault{Method: "ListPodSandbox", Times: 1, Err: errors.New("injected failure"), Only: func(any) bool {
		observed++
		return false
	}})
	d := loadPod(t, strings.Replace(onePod(), "image: 'i:1'",
		"image: 'i:1', readinessProbe: {exec: {command: [x]}, periodSeconds: 3600}", 1))
	if _, err := l.Wait(t.Context(), d, Ready, executor.Options{}); err != nil {
		t.Fatal(err)
	}
	w := l.waiter(d, Ready)
	for i, want := range []int{2, 1} {
		observed = 0
		if _, done, err := w.pass(t.Context()); !done || err != nil || observed != want {
			t.Errorf("pass %d: done %t, %v, observed %d times, want %d", i, done, err, observed, want)
		}
	}
}
