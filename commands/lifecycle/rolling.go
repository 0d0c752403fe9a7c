package lifecycle

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/wait"
	"github.com/podctl/podctl/runtime/workload"
)

// errOutdated cancels the work on a pod whose version is out of date.
var errOutdated = errors.New("the workload no longer needs this version of the pod")

// rolling makes passes over the pods of workloads until the workloads are complete. Each pod has its own goroutine, so
// that a slow pod does not delay the others.
type rolling struct {
	*workloadApplier
	applier *applier
	deleter *deleter
	// working are the pods with work in progress.
	working map[model.PodRef]work
	ended   chan workEnd
	// worked are the pods whose work has ended. They are applied again after recheckInterval, or if their version has
	// changed.
	worked map[model.PodRef]workEnd
	// begun reports whether work on all pods was started once, including pods that are up to date.
	begun bool
	// applied are the pods of all passes. outcomes are the results of their last passes.
	applied  []*podspec.Desired
	outcomes map[model.PodRef]error
	// applies and deletes limit the number of concurrent passes and deletions.
	applies, deletes chan struct{}
}

// work is the current work on a pod. digest is that of its manifest, or empty for a deletion.
type work struct {
	digest string
	cancel context.CancelCauseFunc
}

// workEnd is the result of the work on a pod.
type workEnd struct {
	pod    model.PodRef
	digest string
	err    error
	at     time.Time
}

func newRolling(ctx context.Context, a *workloadApplier, others []*podspec.Desired) *rolling {
	pods, gone := podsOf(a.all)
	count := len(others) + len(pods) + len(gone)
	for _, x := range a.all {
		count += len(x.Seen)
	}
	r := &rolling{
		workloadApplier: a,
		applier:         newApplier(a.sess, a.engine, a.o, count),
		deleter:         newDeleter(a.sess, a.engine, plan.Options{}),
		working:         map[model.PodRef]work{},
		ended:           make(chan workEnd),
		worked:          map[model.PodRef]workEnd{},
		outcomes:        map[model.PodRef]error{},
		applies:         make(chan struct{}, max(a.o.parallel, 1)),
		deletes:         make(chan struct{}, stopsAtOnce),
	}
	r.applier.reverted = a.o.reverted(ctx, a.sess, others)
	r.deleter.lines, r.deleter.opts.Report = a.o.output == "json", r.applier.report
	return r
}

// run works until the workloads are complete, a pass fails, or the context ends.
func (r *rolling) run(ctx context.Context, others []*podspec.Desired) error {
	defer r.applier.stop()
	for _, d := range others {
		r.apply(ctx, d)
	}
	var outcome error
	for {
		if outcome == nil && ctx.Err() == nil && (!r.begun || !r.done()) {
			r.begin(ctx)
		}
		if len(r.working) == 0 && (outcome != nil || ctx.Err() != nil || r.done()) {
			break
		}
		outcome = exit.Join(ctx, outcome, r.next(ctx))
		if outcome == nil && ctx.Err() == nil {
			// An error after the timeout is not a failure, because outOfTime observes the workloads again.
			if err := r.storeJobs(ctx); ctx.Err() == nil {
				outcome = err
			}
		}
	}
	r.printOutcomes(ctx)
	return outcome
}

// begin starts the work on all pods that need not wait. It cancels work on a pod whose version is out of date.
func (r *rolling) begin(ctx context.Context) {
	pods, gone := podsOf(r.all)
	for _, ref := range slices.DeleteFunc(gone, r.isUnknown) {
		if r.isFree(ref, "") {
			r.delete(ctx, ref)
		}
	}
	if r.begun {
		pods = slices.DeleteFunc(r.unsettled(pods), r.isHeldBack)
	}
	r.begun = true
	for _, d := range pods {
		if ref := model.RefOf(d.Pod); !r.isUnknown(ref) && r.isFree(ref, d.Digest()) {
			r.apply(ctx, d)
		}
	}
}

// isHeldBack reports whether a pod must wait for other pods.
func (r *rolling) isHeldBack(d *podspec.Desired) bool {
	return slices.ContainsFunc(r.all, func(x *expanded) bool {
		if x.Record.Key().Namespace != d.Pod.Namespace {
			return false
		}
		return slices.ContainsFunc(x.Waits, func(w workload.Wait) bool { return w.Pod == d.Pod.Name })
	})
}

// isFree reports whether work on a pod may start. It cancels work on another version of the pod.
func (r *rolling) isFree(ref model.PodRef, digest string) bool {
	if w, busy := r.working[ref]; busy {
		if w.digest != "" && w.digest != digest {
			w.cancel(errOutdated)
		}
		return false
	}
	last, worked := r.worked[ref]
	return !worked || last.digest != digest || r.sess.IO.Now().Sub(last.at) >= recheckInterval
}

func (r *rolling) apply(ctx context.Context, d *podspec.Desired) {
	ref := model.RefOf(d.Pod)
	if !slices.ContainsFunc(r.applied, func(other *podspec.Desired) bool { return model.RefOf(other.Pod) == ref }) {
		r.applied = append(r.applied, d)
	}
	jobs := r.areJobs()
	r.work(ctx, ref, d.Digest(), r.applies, func(ctx context.Context) error {
		err := r.applier.one(ctx, d)
		if failed := (*wait.FailedError)(nil); errors.As(err, &failed) && jobs {
			// The Job decides whether the failure of a pod is its own failure.
			return nil
		}
		return err
	})
}

func (r *rolling) delete(ctx context.Context, ref model.PodRef) {
	r.work(ctx, ref, "", r.deletes, func(ctx context.Context) error { return r.deleter.one(ctx, ref) })
}

// work runs a function for a pod when a slot in turns is free.
func (r *rolling) work(
	ctx context.Context, ref model.PodRef, digest string, turns chan struct{}, do func(context.Context) error,
) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.working[ref] = work{digest, cancel}
	go func() {
		defer cancel(nil)
		select {
		case turns <- struct{}{}:
			err := do(ctx)
			<-turns
			if errors.Is(context.Cause(ctx), errOutdated) {
				err = nil
			}
			r.ended <- workEnd{pod: ref, digest: digest, err: err}
		case <-ctx.Done():
			r.ended <- workEnd{pod: ref, digest: digest}
		}
	}()
}

// next waits until the work on a pod has ended or the next change is due, and returns the error of the work.
func (r *rolling) next(ctx context.Context) error {
	stop := ctx.Done()
	if len(r.working) > 0 {
		// The work ends with the context. Its result is still needed.
		stop = nil
	}
	timer := time.NewTimer(r.untilChange())
	defer timer.Stop()
	select {
	case <-stop:
	case <-timer.C:
	case end := <-r.ended:
		delete(r.working, end.pod)
		end.at = r.sess.IO.Now()
		r.worked[end.pod] = end
		if end.digest != "" {
			r.outcomes[end.pod] = end.err
		}
		return end.err
	}
	return nil
}

// printOutcomes writes the results of the applied pods as one JSON line.
func (r *rolling) printOutcomes(ctx context.Context) {
	if r.o.output != "json" {
		return
	}
	errs := make([]error, 0, len(r.applied))
	for _, d := range r.applied {
		errs = append(errs, r.outcomes[model.RefOf(d.Pod)])
	}
	r.applier.printOutcomes(ctx, r.sess, r.applied, errs)
}
