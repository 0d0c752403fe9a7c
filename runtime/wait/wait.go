package wait

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/syncpod"
)

// The pauses between two polls of a pod.
const (
	pauseMin = 4 * time.Millisecond
	pauseMax = 500 * time.Millisecond
	// pullPause is the first pause after a registry could not be reached.
	pullPause = 10 * time.Second
)

// Waiter waits for pods: it makes passes until a goal is reached, or only watches.
type Waiter struct {
	// Report is called between two passes with what a pod waits for; it may be nil.
	Report func(model.PodRef, []Obstacle)

	client *cri.Client
	now    func() time.Time
	// announce prints that a wait may have no end.
	announce func(text string)
	observer *observe.Observer
	pods     *syncpod.Syncer
	prober   *probe.Prober
}

// New returns a Waiter. It calls announce if a wait may have no end.
func New(
	w observe.World, observer *observe.Observer, pods *syncpod.Syncer, prober *probe.Prober, announce func(text string),
) *Waiter {
	return &Waiter{client: w.Client, now: w.Now, announce: announce, observer: observer, pods: pods, prober: prober}
}

// Wait makes passes until the pod has reached the goal, cannot reach it any more, or the context ends. Between passes
// the pod's lock is free, and its probes run in their periods.
func (x *Waiter) Wait(
	ctx context.Context, desired *podspec.Desired, goal Goal, opts executor.Options,
) (*executor.Outcome, error) {
	// From now on the probes run in their periods.
	opts.ProbedSince = x.now()
	w := &podWait{on: x, desired: desired, goal: goal, opts: opts}
	var outcome *executor.Outcome
	err := w.loop(ctx, func() (done, again bool, err error) {
		if outcome, done, err = w.pass(ctx); done || err != nil {
			return done, false, err
		}
		probes := outcome.Plan.Pending() && probe.HasAny(desired.Pod)
		// There is more to do, or a started container can be probed at once.
		return false, (w.pending || probes) && (len(outcome.Failed) == 0 || w.over), nil
	})
	return outcome, err
}

// loop calls step until it is done. Between two calls it waits until something has changed, unless again is set. It
// repeats a step if the runtime did not answer.
func (w *podWait) loop(ctx context.Context, step func() (done, again bool, err error)) error {
	activityCtx, stop := context.WithCancel(ctx)
	defer stop()
	w.activity = w.on.watchPod(activityCtx, model.RefOf(w.desired.Pod))
	for {
		done, again, err := step()
		if w.retryable(ctx, err) || err == nil && !done && again {
			continue
		}
		if done || err != nil {
			return w.translate(ctx, err)
		}
		if err := w.pause(ctx); err != nil && !w.retryable(ctx, err) {
			return w.translate(ctx, err)
		}
	}
}

// podWait is one wait for one pod.
type podWait struct {
	on       *Waiter
	desired  *podspec.Desired
	goal     Goal
	opts     executor.Options
	activity *activity
	// follows is set if an agent makes the passes and runs the probes.
	follows bool
	retry

	// missing describes the conditions of the goal that the pod does not meet. announced is the text that was printed.
	missing   []string
	announced string
	// until is the first time at which something will change by itself.
	until time.Time
	// pending reports whether the next pass has something to do.
	pending bool
	// over reports whether the pod has finished. Only cleanup is left, which does not wait for failures.
	over bool
	// seen is the result of the last observation.
	seen string
	// in is the last observation of the pod; nil once something has happened since.
	in *plan.Input
}

// retry has the result of the last pass and failures that may go away.
type retry struct {
	// last is the outcome of the last pass.
	last *executor.Outcome
	// trouble is the last failure that may go away, retryAt when it is retried. If a restart delay holds a failed
	// start, the hold has the text.
	trouble []string
	retryAt time.Time
	// tries counts the passes in a row that failed, unanswered those in which the runtime did not answer.
	tries, unanswered int
	// answered is when the runtime answered last; zero until it has. silent is when a call first got no answer since.
	answered, failingSince time.Time
}

// UnansweredMax is how often in a row a pass may fail because the runtime does not answer, although it answers queries
// in between.
const UnansweredMax = 5

// retryable reports whether a wait continues after a pause although the runtime does not answer. It answered before,
// and may have been restarted.
func (w *podWait) retryable(ctx context.Context, err error) bool {
	if err == nil {
		w.answered, w.failingSince = w.on.now(), time.Time{}
		return false
	}
	gone, blocked := (*cri.UnavailableError)(nil), (*BlockedError)(nil)
	if !errors.As(err, &gone) || errors.As(err, &blocked) || w.answered.IsZero() {
		return false
	}
	if w.failingSince.IsZero() {
		// The time does not count from the last answer, because a slow machine may need longer for one call. Every wait
		// retries at least once.
		w.failingSince = w.on.now()
	}
	if w.on.now().Sub(w.failingSince) > cri.RetryTime {
		return false
	}
	w.missing = []string{gone.Error()}
	return sleep.For(ctx, cri.RetryPause) == nil
}

// pass runs the probes that are due, makes a pass and compares the pod with the goal.
func (w *podWait) pass(ctx context.Context) (*executor.Outcome, bool, error) {
	if err := w.probe(ctx); err != nil {
		return nil, false, err
	}
	before := w.last
	outcome, err := w.apply(ctx)
	if err != nil {
		return outcome, false, err
	}
	in, p := outcome.Input, outcome.Plan
	if outcome == before || !outcome.Unchanged || w.opts.Saved != nil {
		if in, err = w.observe(ctx); err != nil {
			return outcome, false, err
		}
		p = plan.Make(in)
	}
	status := podstatus.Of(in.State())
	done, err := w.judge(in, &status, p)
	w.report(in, &status, p)
	w.in, w.seen = in, fingerprint(&in.Observed)
	return outcome, done, err
}

// observe observes the pod after a pass that changed it, or if no pass was made.
func (w *podWait) observe(ctx context.Context) (*plan.Input, error) {
	in, s, err := w.on.observer.Input(ctx, model.RefOf(w.desired.Pod), w.desired, w.opts.Options)
	if err != nil {
		return nil, err
	}
	return in, syncpod.Superseded(in.Pod, w.desired, s.Checkpoint)
}

// apply makes a pass, unless it waits before the next try of a registry that could not be reached.
func (w *podWait) apply(ctx context.Context) (*executor.Outcome, error) {
	if w.on.now().Before(w.retryAt) {
		return w.last, nil
	}
	outcome, err := w.on.pods.Apply(ctx, w.desired, w.opts)
	if err != nil {
		return outcome, err
	}
	if !w.desired.Stored && !outcome.Plan.Refused() {
		// From now on others may change it.
		stored := *w.desired
		stored.Stored = true
		w.desired = &stored
	}
	w.last, w.answered, w.failingSince = outcome, w.on.now(), time.Time{}
	if err = w.failed(outcome); err == nil && w.on.now().Before(w.retryAt) {
		// The status of the pod shows the pause. The wait does not fail if this fails.
		if noteErr := w.on.pods.NotePullPause(ctx, outcome, w.retryAt); noteErr != nil {
			w.trouble = append(w.trouble, noteErr.Error())
		}
	}
	return outcome, err
}

// probe runs the probes that the goal needs and that are due.
func (w *podWait) probe(ctx context.Context) error {
	if !probe.HasAny(w.desired.Pod) || w.in != nil && !probe.IsDue(w.desired, &w.in.Observed, w.on.now()) {
		return nil
	}
	reports, err := w.on.prober.Probe(ctx, w.desired, probe.Options{Due: true})
	if err != nil || !slices.ContainsFunc(reports, passedStartup) {
		return err
	}
	// Probes that waited for a startup probe can run at once.
	_, err = w.on.prober.Probe(ctx, w.desired, probe.Options{Due: true})
	return err
}

func passedStartup(r probe.Report) bool {
	return r.Type == model.Startup && r.Ran && r.Record.Result == model.ProbeSuccess
}

// failed ends the wait for a failure that retrying cannot fix, and plans a retry for one that it can.
func (w *podWait) failed(outcome *executor.Outcome) error {
	err := outcome.Err()
	if err == nil {
		w.tries, w.unanswered, w.trouble, w.retryAt = 0, 0, nil, time.Time{}
		return nil
	}
	if gone := (*cri.UnavailableError)(nil); errors.As(err, &gone) {
		return w.unansweredBy(err)
	}
	w.tries++
	w.unanswered = 0
	if e := (*images.Error)(nil); errors.As(err, &e) && e.Passing {
		w.retryAt = w.on.now().Add(min(pullPause<<min(w.tries-1, 5), 5*time.Minute))
		w.trouble = failures(outcome)
		return nil
	}
	if s := (*executor.StepError)(nil); errors.As(err, &s) && s.Retryable && w.goesOn(s.Step.Container) {
		w.trouble = failures(outcome)
		return nil
	}
	return w.blockedBy(err, blocking(outcome.Plan)...)
}

// failures returns the texts of the failures of a pass.
func failures(outcome *executor.Outcome) []string {
	texts := make([]string, 0, len(outcome.Failed))
	for i := range outcome.Failed {
		texts = append(texts, outcome.Failed[i].Error())
	}
	return texts
}

// unansweredBy plans a retry, because the runtime may have been restarted. If it was not, the next observation reports
// the error.
func (w *podWait) unansweredBy(err error) error {
	if w.unanswered++; w.unanswered >= UnansweredMax {
		return w.blockedBy(err)
	}
	w.retryAt = w.on.now().Add(cri.RetryPause)
	w.trouble = []string{err.Error()}
	return nil
}

// blockedBy ends a wait for an error that retrying cannot fix. The error includes the holds.
func (w *podWait) blockedBy(err error, held ...string) error {
	reason := strings.Join(append([]string{err.Error()}, held...), "; ")
	return &BlockedError{Pod: model.RefOf(w.desired.Pod), Goal: w.goal, Reason: reason, Err: err}
}

// goesOn reports whether a wait continues after a failed start of a container: the start is retried, or it ended the
// container, which is enough for the goal Completed.
func (w *podWait) goesOn(container string) bool {
	ref, ok := podspec.FindContainer(w.desired.Pod, container)
	return w.goal == Completed || (ok && podstatus.MayRestart(w.desired.Pod, ref.Container))
}

// translate turns the end of the context into a *TimeoutError.
func (w *podWait) translate(ctx context.Context, err error) error {
	if err == nil {
		return nil // The goal was reached just in time.
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if len(w.missing) == 0 {
			w.missing = []string{err.Error()}
		}
		return &TimeoutError{Pod: model.RefOf(w.desired.Pod), Goal: w.goal, Missing: strings.Join(w.missing, "; ")}
	}
	if locked := (*filelock.LockedError)(nil); ctx.Err() == nil && errors.As(err, &locked) {
		locked.What = "it"
		return &TimeoutError{Pod: model.RefOf(w.desired.Pod), Goal: w.goal, Missing: locked.Error()}
	}
	return err
}
