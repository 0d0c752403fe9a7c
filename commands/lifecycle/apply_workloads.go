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

// applyWorkloads keeps workloads, and makes one pass over their pods and others. With --wait it makes as many as it takes.
func (o *applyOptions) applyWorkloads(ctx context.Context, sess *session.Session, found *selection.Found) error {
	key := controller.KeyOf(found.Workloads[0])
	switch {
	case o.plan != "":
		return exit.Usagef("--plan executes a plan of pods: apply %s by itself", key)
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
	if err := a.keep(ctx); err != nil {
		return err
	}
	if a.beside = sess.AgentLooks(ctx); a.beside {
		a.follows = sess.AgentKeeps(ctx, a.keys())
		if err := a.again(ctx); err != nil {
			return err
		}
	}
	return a.apply(ctx, found.Pods)
}

// workloadApplier makes passes over workloads.
type workloadApplier struct {
	*expander
	o *applyOptions
	// all are the workloads with what they come to.
	all []*expanded
	// beside is set where an agent keeps the pods too.
	beside bool
	// follows is set where that agent keeps the pods of all the workloads.
	follows bool
	// stale is set if nobody could look at the workloads after the last pass.
	stale bool
}

func (a *workloadApplier) keys() []state.ObjectKey {
	keys := make([]state.ObjectKey, 0, len(a.all))
	for _, x := range a.all {
		keys = append(keys, x.Record.Key())
	}
	return keys
}

// keep writes the workloads down.
func (a *workloadApplier) keep(ctx context.Context) error {
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

// apply makes a pass over all pods. With --wait it goes on until the workloads are as they must be, or leaves that to the agent that keeps them.
func (a *workloadApplier) apply(ctx context.Context, beside []*podspec.Desired) error {
	var outcome error
	switch {
	case a.o.wait == "":
		outcome = a.pass(ctx, beside)
	case a.follows:
		outcome = a.follow(ctx, beside)
	default:
		outcome = newRolling(ctx, a, beside).run(ctx, beside)
	}
	if ctx.Err() != nil {
		outcome = exit.Join(ctx, a.outOfTime(ctx), outcome)
	}
	return exit.Join(ctx, outcome, a.conclude(ctx))
}

// follow watches workloads whose pods an agent keeps. It makes no passes over them: two processes that take turns at the locks of the pods would hold
// each other up.
func (a *workloadApplier) follow(ctx context.Context, beside []*podspec.Desired) error {
	if len(beside) > 0 {
		if err := a.o.apply(ctx, a.sess, beside); err != nil {
			return err
		}
	}
	for said := ""; !a.done(); {
		if !terminal.Sleep(ctx, a.untilChange()) {
			return nil
		}
		if err := a.reread(ctx); err != nil {
			return err
		}
		if text := a.missing(); text != "" && text != said && terminal.IsText(a.o.output) {
			said = text
			a.sess.IO.Note("note: the agent works on it: %s", text)
		}
	}
	return nil
}

// missing says what the workloads lack.
func (a *workloadApplier) missing() string {
	var texts []string
	for _, x := range a.all {
		if !a.isDone(x) {
			texts = append(texts, fmt.Sprintf("%s, %s", x.Record.Key(), x.missing()))
		}
	}
	return strings.Join(texts, "; ")
}

// reread looks at the workloads as the agent has stored them. A Job that it has deleted since has lived its time.
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
		a.sess.IO.Note("note: %s has ended, and was deleted since (ttlSecondsAfterFinished)", x.Record.Key())
		a.all = slices.DeleteFunc(a.all, func(other *expanded) bool { return other == x })
	}
	return a.again(ctx)
}

// again looks at the workloads anew.
func (a *workloadApplier) again(ctx context.Context) error {
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

// pass deletes the pods that shall go, and makes a pass over those that shall be there. What has become of each workload
// is known afterwards.
func (a *workloadApplier) pass(ctx context.Context, beside []*podspec.Desired) error {
	pods, gone := podsOf(a.all)
	outcome := DeletePods(ctx, a.sess, slices.DeleteFunc(gone, a.isUnknown), a.o.output)
	if a.beside {
		pods = a.unsettled(pods)
	}
	pods = slices.DeleteFunc(pods, func(d *podspec.Desired) bool { return a.isUnknown(model.RefOf(d.Pod)) })
	if pods = slices.Concat(beside, pods); len(pods) > 0 {
		err := a.o.apply(ctx, a.sess, pods)
		if failed := (*wait.FailedError)(nil); errors.As(err, &failed) && a.areJobs() {
			// Whether a Job has failed with it is the Job's to say.
			err = nil
		}
		outcome = exit.Join(ctx, outcome, err)
	}
	if ctx.Err() != nil {
		return outcome
	}
	return exit.Join(ctx, outcome, a.keepJobs(ctx))
}

// keepJobs looks at the workloads after a pass, and keeps how far Jobs are. One that has lived its time is forgotten.
func (a *workloadApplier) keepJobs(ctx context.Context) error {
	if err := a.again(ctx); err != nil {
		return err
	}
	var outcomes []error
	for _, x := range a.all {
		switch {
		case x.Expired:
			outcomes = append(outcomes, a.sess.Workloads().Expire(ctx, x.Record.Key()), DeletePods(ctx, a.sess, x.Gone, a.o.output))
		case x.Job != nil:
			x.Record.Job = x.Job
			outcomes = append(outcomes, a.sess.Workloads().KeepJob(ctx, x.Record))
		}
	}
	return exit.Join(ctx, outcomes...)
}

// unsettled leaves out the pods that are as they shall be, which a pass has just seen, and those that stay as they are while
// an agent keeps them.
func (a *workloadApplier) unsettled(pods []*podspec.Desired) []*podspec.Desired {
	return slices.DeleteFunc(pods, func(d *podspec.Desired) bool {
		return a.beside && d.Stored || slices.ContainsFunc(a.all, func(x *expanded) bool { return slices.Contains(x.Settled, model.RefOf(d.Pod)) })
	})
}

// isUnknown reports whether a pod could not be observed. A pass over it, or its deletion, would fail in the same way.
func (a *workloadApplier) isUnknown(ref model.PodRef) bool {
	return slices.ContainsFunc(a.all, func(x *expanded) bool { return x.isUnknown(ref) })
}

func (a *workloadApplier) areJobs() bool {
	return !slices.ContainsFunc(a.all, func(x *expanded) bool { return x.Job == nil })
}

// done reports whether no other pass is needed for what is waited for.
func (a *workloadApplier) done() bool {
	return !slices.ContainsFunc(a.all, func(x *expanded) bool { return !a.isDone(x) })
}

// isDone reports whether a workload needs no other pass.
func (a *workloadApplier) isDone(x *expanded) bool {
	switch {
	case len(x.Unknown) > 0 && x.onlyUnknownLeft():
		return true
	case x.Job != nil:
		return a.o.wait != string(wait.Completed) || workload.JobEnd(x.Job) != nil
	}
	return len(x.Waits)+len(x.Gone) == 0 && x.Status.Complete()
}

// lookEach is how often workloads are looked at that wait for nothing whose time is known.
const lookEach = time.Second

// untilChange is the time until something can have changed.
func (a *workloadApplier) untilChange() time.Duration {
	now := a.sess.IO.Now()
	until := now.Add(lookEach)
	for _, x := range a.all {
		if !x.Next.IsZero() && x.Next.Before(until) {
			until = x.Next
		}
	}
	return max(until.Sub(now), time.Millisecond)
}

// lastLook bounds the look at workloads after the time of the command is over. The state before it is printed if it takes longer.
const lastLook = 2 * time.Second

// outOfTime says what the workloads lacked at the end of the time. The last pass may have been cut off before anybody looked at what it did.
func (a *workloadApplier) outOfTime(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	seen := ""
	if a.stale = a.again(last) != nil; a.stale {
		seen = "as seen before the last pass, "
	}
	var outcomes []error
	for _, x := range a.all {
		if !a.isDone(x) {
			outcomes = append(outcomes, fmt.Errorf("%w; %s, %s%s", context.Cause(ctx), x.Record.Key(), seen, x.missing()))
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && a.o.wait != "" && len(outcomes) > 0 {
		return &exit.CodeError{Code: exit.NotYet, Err: errors.Join(outcomes...)}
	}
	return exit.Join(ctx, outcomes...)
}

// conclude says what has become of each workload.
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
				outcomes = append(outcomes, &exit.CodeError{Code: exit.PodFailed, Err: fmt.Errorf("%s has failed: %s: %s", doc.Key(), end.Reason, end.Message)})
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
