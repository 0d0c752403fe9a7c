package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/wait"
	"github.com/podctl/podctl/runtime/workload"
)

// applyWorkloads stores workloads, and makes one pass over their pods and the other pods. With --wait it makes as many
// passes as needed.
func (o *applyOptions) applyWorkloads(ctx context.Context, sess *session.Session, found *selection.Found) error {
	key := controller.KeyOf(found.Workloads[0])
	switch {
	case o.plan != "":
		return exit.Usagef("--plan executes plans of pods only: apply %s separately", key)
	case o.wait == string(wait.Completed):
		for _, w := range found.Workloads {
			if w.Job == nil {
				return exit.Usagef("--wait=completed: %s never completes; use --wait", controller.KeyOf(w))
			}
		}
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	a := &workloadApplier{o: o, expander: &expander{sess: sess, engine: engine, labels: o.admission.Labels}}
	if a.all, err = a.change(ctx, found.Workloads, found.Pods); err != nil {
		return err
	}
	if err := a.store(ctx); err != nil {
		return err
	}
	if a.withAgent = sess.NotifyAgent(ctx); a.withAgent {
		a.follows = sess.AgentKeeps(ctx, a.keys())
		if err := a.reobserve(ctx); err != nil {
			return err
		}
	}
	return a.apply(ctx, found.Pods)
}

// workloadApplier makes passes over workloads.
type workloadApplier struct {
	*expander
	o *applyOptions
	// all are the workloads with their pods.
	all []*expanded
	// withAgent is set if an agent also keeps the pods.
	withAgent bool
	// follows is set if that agent keeps the pods of all the workloads.
	follows bool
	// stale is set if the workloads could not be observed after the last pass.
	stale bool
}

func (a *workloadApplier) keys() []state.ObjectKey {
	keys := make([]state.ObjectKey, 0, len(a.all))
	for _, x := range a.all {
		keys = append(keys, x.Record.Key())
	}
	return keys
}

// store stores the workloads.
func (a *workloadApplier) store(ctx context.Context) error {
	for _, x := range a.all {
		c, err := a.sess.Workloads().Put(ctx, x.Record.Workload)
		if err != nil {
			return err
		}
		if x.Outcome = c.Outcome; terminal.IsText(a.o.output) {
			a.sess.IO.Print("%s %s", c.Record.Key(), cmp.Or(a.o.doing, string(c.Outcome)))
		}
	}
	return nil
}

// apply makes a pass over all pods. With --wait it continues until the workloads are complete, or leaves this to the
// agent that keeps them.
func (a *workloadApplier) apply(ctx context.Context, others []*podspec.Desired) error {
	var outcome error
	switch {
	case a.o.wait == "":
		outcome = a.pass(ctx, others)
	case a.follows:
		outcome = a.follow(ctx, others)
	default:
		outcome = newRolling(ctx, a, others).run(ctx, others)
	}
	if ctx.Err() != nil {
		outcome = exit.Join(ctx, a.outOfTime(ctx), outcome)
	}
	return exit.Join(ctx, outcome, a.conclude(ctx))
}

// follow watches workloads whose pods an agent keeps. It makes no passes itself, because two processes that alternate
// on the locks of the pods would delay each other.
func (a *workloadApplier) follow(ctx context.Context, others []*podspec.Desired) error {
	if len(others) > 0 {
		if err := a.o.apply(ctx, a.sess, others); err != nil {
			return err
		}
	}
	for printed := ""; !a.done(); {
		if !terminal.Sleep(ctx, a.untilChange()) {
			return nil
		}
		if err := a.reread(ctx); err != nil {
			return err
		}
		if text := a.missing(); text != "" && text != printed && terminal.IsText(a.o.output) {
			printed = text
			a.sess.IO.Note("note: the agent is working on it: %s", text)
		}
	}
	return nil
}

// missing describes the incomplete workloads.
func (a *workloadApplier) missing() string {
	var texts []string
	for _, x := range a.all {
		if !a.isDone(x) {
			texts = append(texts, fmt.Sprintf("%s, %s", x.Record.Key(), x.missing()))
		}
	}
	return strings.Join(texts, "; ")
}

// reread observes the workloads as the agent has stored them. A Job that is gone and has ttlSecondsAfterFinished has
// finished and expired.
func (a *workloadApplier) reread(ctx context.Context) error {
	var gone []*expanded
	for _, x := range a.all {
		r, err := a.sess.Workloads().Get(x.Record.Key())
		missing := (*objects.NotFoundError)(nil)
		switch {
		case errors.As(err, &missing) && x.Job != nil && x.Record.Workload.Job.Spec.TTLSecondsAfterFinished != nil:
			gone = append(gone, x)
		case err != nil:
			return err
		default:
			x.Record = r
			if r.Job != nil {
				x.Job = r.Job
			}
		}
	}
	for _, x := range gone {
		a.sess.IO.Note("note: %s has finished and was deleted (ttlSecondsAfterFinished)", x.Record.Key())
		a.all = slices.DeleteFunc(a.all, func(other *expanded) bool { return other == x })
	}
	return a.reobserve(ctx)
}

// reobserve observes the workloads again.
func (a *workloadApplier) reobserve(ctx context.Context) error {
	changes := make([]controller.Change, 0, len(a.all))
	for _, x := range a.all {
		c := x.Change
		c.Record.Job = x.Job
		changes = append(changes, c)
	}
	all, err := a.expand(ctx, changes)
	if err == nil {
		a.all = all
	}
	return err
}

// pass deletes the surplus pods and makes a pass over the others. It updates the state of the workloads.
func (a *workloadApplier) pass(ctx context.Context, others []*podspec.Desired) error {
	pods, gone := podsOf(a.all)
	outcome := DeletePods(ctx, a.sess, slices.DeleteFunc(gone, a.isUnknown), a.o.output)
	if a.withAgent {
		pods = a.unsettled(pods)
	}
	pods = slices.DeleteFunc(pods, func(d *podspec.Desired) bool { return a.isUnknown(model.RefOf(d.Pod)) })
	if pods = slices.Concat(others, pods); len(pods) > 0 {
		err := a.o.apply(ctx, a.sess, pods)
		if failed := (*wait.FailedError)(nil); errors.As(err, &failed) && a.areJobs() {
			// The Job decides whether the failure of a pod is its own failure.
			err = nil
		}
		outcome = exit.Join(ctx, outcome, err)
	}
	if ctx.Err() != nil {
		return outcome
	}
	return exit.Join(ctx, outcome, a.storeJobs(ctx))
}

// storeJobs observes the workloads after a pass and stores the progress of Jobs. It removes an expired Job.
func (a *workloadApplier) storeJobs(ctx context.Context) error {
	if err := a.reobserve(ctx); err != nil {
		return err
	}
	var outcomes []error
	for _, x := range a.all {
		switch {
		case x.Expired:
			outcomes = append(outcomes,
				a.sess.Workloads().Expire(ctx, x.Record.Key()),
				DeletePods(ctx, a.sess, x.Gone, a.o.output))
		case x.Job != nil:
			x.Record.Job = x.Job
			outcomes = append(outcomes, a.sess.Workloads().KeepJob(ctx, x.Record))
		}
	}
	return exit.Join(ctx, outcomes...)
}

// unsettled omits pods that the last pass found up to date. If an agent runs, it also omits pods that keep their stored
// version.
func (a *workloadApplier) unsettled(pods []*podspec.Desired) []*podspec.Desired {
	return slices.DeleteFunc(pods, func(d *podspec.Desired) bool {
		if a.withAgent && d.Stored {
			return true
		}
		ref := model.RefOf(d.Pod)
		return slices.ContainsFunc(a.all, func(x *expanded) bool { return slices.Contains(x.Settled, ref) })
	})
}

// isUnknown reports whether a pod could not be observed. A pass over it, or its deletion, would fail with the same
// error.
func (a *workloadApplier) isUnknown(ref model.PodRef) bool {
	return slices.ContainsFunc(a.all, func(x *expanded) bool { return x.isUnknown(ref) })
}

func (a *workloadApplier) areJobs() bool {
	return !slices.ContainsFunc(a.all, func(x *expanded) bool { return x.Job == nil })
}

// done reports whether all workloads have reached the goal of --wait.
func (a *workloadApplier) done() bool {
	return !slices.ContainsFunc(a.all, func(x *expanded) bool { return !a.isDone(x) })
}

// isDone reports whether a workload has reached the goal of --wait, or cannot because its remaining pods cannot be
// observed.
func (a *workloadApplier) isDone(x *expanded) bool {
	switch {
	case len(x.Unknown) > 0 && x.onlyUnknownRemain():
		return true
	case x.Job != nil:
		return a.o.wait != string(wait.Completed) || workload.JobEnd(x.Job) != nil
	}
	return len(x.Waits)+len(x.Gone) == 0 && x.Status.Complete()
}

// recheckInterval is the interval at which workloads are observed if the time of their next change is unknown.
const recheckInterval = time.Second

// untilChange returns the time until the next possible change.
func (a *workloadApplier) untilChange() time.Duration {
	now := a.sess.IO.Now()
	until := now.Add(recheckInterval)
	for _, x := range a.all {
		if !x.Next.IsZero() && x.Next.Before(until) {
			until = x.Next
		}
	}
	return max(until.Sub(now), time.Millisecond)
}

// lastObservation limits the observation after the timeout of the command. If it takes longer, the earlier state is
// printed.
const lastObservation = 2 * time.Second

// outOfTime reports the incomplete workloads at the timeout. It observes them again, because the last pass may have
// ended before its result was observed.
func (a *workloadApplier) outOfTime(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastObservation)
	defer cancel()
	seen := ""
	if a.stale = a.reobserve(last) != nil; a.stale {
		seen = "state before the last pass, "
	}
	var outcomes []error
	for _, x := range a.all {
		if !a.isDone(x) {
			err := fmt.Errorf("%w; %s, %s%s", context.Cause(ctx), x.Record.Key(), seen, x.missing())
			outcomes = append(outcomes, err)
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && a.o.wait != "" && len(outcomes) > 0 {
		return &exit.CodeError{Code: exit.NotYet, Err: errors.Join(outcomes...)}
	}
	return exit.Join(ctx, outcomes...)
}

// conclude prints the result of each workload.
func (a *workloadApplier) conclude(ctx context.Context) error {
	var outcomes []error
	for _, x := range a.all {
		doc := x.document()
		if !a.stale {
			a.show(&doc)
		}
		outcomes = append(outcomes, x.UnknownErr())
		if x.Job != nil {
			if end := workload.JobEnd(x.Job); end != nil && end.Type == batchv1.JobFailed {
				err := fmt.Errorf("%s has failed: %s: %s", doc.Key(), end.Reason, end.Message)
				outcomes = append(outcomes, &exit.CodeError{Code: exit.PodFailed, Err: err})
			}
		}
		if a.o.exitCode && a.o.wait == "" && (x.Outcome != objects.Unchanged || len(x.Waits) > 0) {
			outcomes = append(outcomes, exit.With(exit.NotYet))
		}
	}
	return exit.Join(ctx, outcomes...)
}

func (a *workloadApplier) show(doc *view.WorkloadChange) {
	if !terminal.IsText(a.o.output) {
		view.Line(a.sess.IO, doc)
		return
	}
	for _, line := range view.WorkloadWaits(doc) {
		a.sess.IO.Note("note: %s", line)
	}
	a.sess.IO.Print("%s", view.WorkloadOutcome(doc))
}
