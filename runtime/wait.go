package runtime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/image"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/state"
)

// The pauses between two looks at a pod that is waited for.
const (
	pauseMin = 4 * time.Millisecond
	pauseMax = 500 * time.Millisecond
	// pullPause is the first pause after a registry that could not be reached.
	pullPause = 10 * time.Second
)

// Wait makes passes until the pod has reached the goal, cannot reach it any
// more, or the context ends. Between passes the pod's lock is free and its
// probes are asked in their periods.
func (e *Engine) Wait(ctx context.Context, desired *podspec.Desired, goal Goal, opts Options) (*Outcome, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w := &waiter{e: e, desired: desired, goal: goal, opts: opts, watch: e.watchPod(watching, model.RefOf(desired.Pod))}
	for {
		outcome, done, err := w.pass(ctx)
		if w.survives(ctx, err) {
			continue
		}
		if done || err != nil {
			return outcome, w.translate(ctx, err)
		}
		probes := outcome.Plan.Pending() && hasProbes(desired.Pod)
		if (w.pending || probes) && (len(outcome.Failed) == 0 || w.over) {
			// There is more to do, or what was started can be asked at once.
			continue
		}
		if err := w.pause(ctx); err != nil && !w.survives(ctx, err) {
			return outcome, w.translate(ctx, err)
		}
	}
}

// waiter is one wait for one pod.
type waiter struct {
	e       *Engine
	desired *podspec.Desired
	goal    Goal
	opts    Options
	watch   *watch

	waiting []string
	// told is what the user has been told of it.
	told string
	// trouble is what failed last and may pass, retryAt when it is tried again.
	trouble []string
	retryAt time.Time
	// until is the first moment at which something will change by itself.
	until time.Time
	// pending tells that the next pass has something to do.
	pending bool
	// over tells that the pod has come to its end: what is left is to clear up after it,
	// which waits for nothing that failed.
	over bool
	// seen is what the last look at the pod's containers showed.
	seen string
	// tries counts the passes in a row that failed, unanswered those of them in which the
	// runtime did not answer.
	tries, unanswered int
	// answered is when the runtime answered last; zero until it has.
	answered time.Time
	// last is what the last pass came to.
	last *Outcome
}

// A runtime that is restarted is waited for: how long, and how often it is asked.
const (
	silenceMax   = time.Minute
	silencePause = 500 * time.Millisecond
	// unansweredMax is how often in a row a pass may fail because the runtime does not
	// answer, although it answers again when it is asked how things are.
	unansweredMax = 5
)

// survives tells that a wait goes on although the runtime does not answer, after a
// pause: it did before, and may have been restarted.
func (w *waiter) survives(ctx context.Context, err error) bool {
	if err == nil {
		w.answered = w.e.now()
		return false
	}
	gone, blocked := (*UnavailableError)(nil), (*BlockedError)(nil)
	if !errors.As(err, &gone) || errors.As(err, &blocked) || w.answered.IsZero() || w.e.now().Sub(w.answered) > silenceMax {
		return false
	}
	w.waiting = []string{gone.Error()}
	return sleep(ctx, silencePause) == nil
}

// pass asks the probes that are due, makes a pass and judges where the pod is.
func (w *waiter) pass(ctx context.Context) (*Outcome, bool, error) {
	if err := w.probe(ctx); err != nil {
		return nil, false, err
	}
	outcome, err := w.apply(ctx)
	if err != nil {
		return outcome, false, err
	}
	in, s, err := w.e.input(ctx, model.RefOf(w.desired.Pod), w.desired, w.opts.Options)
	if err != nil {
		return outcome, false, err
	}
	if err = superseded(in.Pod, w.desired, s.Journal); err != nil {
		return outcome, false, err
	}
	status := podstatus.Of(in.State())
	p := plan.Make(in)
	done, err := w.judge(in, &status, p)
	w.seen = fingerprint(s)
	return outcome, done, err
}

// apply makes a pass, unless a registry that could not be reached is given time.
func (w *waiter) apply(ctx context.Context) (*Outcome, error) {
	if w.e.now().Before(w.retryAt) {
		return w.last, nil
	}
	outcome, err := w.e.Apply(ctx, w.desired, w.opts)
	if err != nil {
		return outcome, err
	}
	if !w.desired.Stored {
		// From now on others may change it.
		stored := *w.desired
		stored.Stored = true
		w.desired = &stored
	}
	w.last, w.answered = outcome, w.e.now()
	return outcome, w.failed(outcome)
}

// probe asks what has to be known for the goal, and only what is due.
func (w *waiter) probe(ctx context.Context) error {
	if !hasProbes(w.desired.Pod) {
		return nil
	}
	reports, err := w.e.Probe(ctx, w.desired, ProbeOptions{Due: true})
	if err != nil || !slices.ContainsFunc(reports, passedStartup) {
		return err
	}
	// What waited for a startup probe can be asked at once.
	_, err = w.e.Probe(ctx, w.desired, ProbeOptions{Due: true})
	return err
}

func passedStartup(r ProbeReport) bool {
	return r.Type == model.Startup && r.Asked && r.Record.Result == model.ProbeSuccess
}

func hasProbes(pod *v1.Pod) bool {
	return slices.ContainsFunc(podspec.Containers(pod), func(ref podspec.ContainerRef) bool {
		return ref.LivenessProbe != nil || ref.ReadinessProbe != nil || ref.StartupProbe != nil
	})
}

// failed ends the wait for a failure that trying again cannot mend, and makes
// room for one that it can.
func (w *waiter) failed(outcome *Outcome) error {
	err := outcome.Err()
	if err == nil {
		w.tries, w.unanswered, w.trouble, w.retryAt = 0, 0, nil, time.Time{}
		return nil
	}
	if gone := (*UnavailableError)(nil); errors.As(err, &gone) {
		return w.unansweredBy(err)
	}
	w.tries++
	w.unanswered = 0
	if e := (*image.Error)(nil); errors.As(err, &e) && e.Passing {
		w.retryAt = w.e.now().Add(min(pullPause<<min(w.tries-1, 5), 5*time.Minute))
		w.trouble = []string{err.Error()}
		return nil
	}
	if s := (*StepError)(nil); errors.As(err, &s) && mayPass(s.Reason) && w.goesOn(s.Step.Container) {
		w.trouble = []string{err.Error()}
		return nil
	}
	return w.blockedBy(err)
}

// unansweredBy makes room for another try: the runtime may have been restarted. If it
// has not, the next look at it says so.
func (w *waiter) unansweredBy(err error) error {
	if w.unanswered++; w.unanswered >= unansweredMax {
		return w.blockedBy(err)
	}
	w.retryAt = w.e.now().Add(silencePause)
	w.trouble = []string{err.Error()}
	return nil
}

// blockedBy ends a wait for an error that trying again does not mend.
func (w *waiter) blockedBy(err error) error {
	return &BlockedError{Pod: model.RefOf(w.desired.Pod), Goal: w.goal, Reason: err.Error(), Err: err}
}

// mayPass tells that a failed start is retried with its restart delay, as the
// kubelet does.
func mayPass(reason model.Reason) bool {
	return reason == model.PostStartHookError || reason == model.RunContainerError
}

// goesOn tells that a wait goes on after a failed start of a container: it is tried again,
// or that was its end, as any exit code is for a pod that shall only complete.
func (w *waiter) goesOn(container string) bool {
	ref, ok := podspec.FindContainer(w.desired.Pod, container)
	return w.goal == CompletedGoal || (ok && podstatus.MayRestart(w.desired.Pod, ref.Container))
}

// translate turns the end of the time into what the user waited for.
func (w *waiter) translate(ctx context.Context, err error) error {
	if err == nil {
		return nil // It was reached in time, if only just.
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if len(w.waiting) == 0 {
			w.waiting = []string{err.Error()}
		}
		return &TimeoutError{Pod: model.RefOf(w.desired.Pod), Goal: w.goal, Waiting: strings.Join(w.waiting, "; ")}
	}
	if locked := (*state.LockedError)(nil); ctx.Err() == nil && errors.As(err, &locked) {
		locked.Pod = "it"
		return &TimeoutError{Pod: model.RefOf(w.desired.Pod), Goal: w.goal, Waiting: locked.Error()}
	}
	return err
}
