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

// errOutdated ends the wait for a pod that is no longer wanted so.
var errOutdated = errors.New("the workload wants another version of the pod, or none")

// rolling makes passes over the pods of workloads until these are as they must be. Each pod is worked on by itself: one that takes long to stop holds up no
// other that may be updated meanwhile.
type rolling struct {
	*workloadApplier
	applier *applier
	deleter *deleter
	// working are the pods that are worked on.
	working map[model.PodRef]work
	ended   chan workEnd
	// worked are the pods on which work has ended, with the moment. They rest until something can have changed.
	worked map[model.PodRef]workEnd
	// begun reports whether all pods have been begun once, also those that are as they must be.
	begun bool
	// applied are the pods of all passes, with the end of the last one.
	applied  []*podspec.Desired
	outcomes map[model.PodRef]error
	// applies and deletes bound how many pods are worked on at a time.
	applies, deletes chan struct{}
}

// work is what is done to one pod. The digest is that of its manifest; empty for a deletion.
type work struct {
	digest string
	cancel context.CancelCauseFunc
}

// workEnd is the end of the work on a pod.
type workEnd struct {
	pod    model.PodRef
	digest string
	err    error
	at     time.Time
}

func newRolling(ctx context.Context, a *workloadApplier, beside []*podspec.Desired) *rolling {
	pods, gone := podsOf(a.all)
	count := len(beside) + len(pods) + len(gone)
	for _, x := range a.all {
		count += len(x.Seen)
	}
	r := &rolling{
		workloadApplier: a, applier: newApplier(a.sess, a.engine, a.o, count), deleter: newDeleter(a.sess, a.engine, plan.Options{}),
		working: map[model.PodRef]work{}, ended: make(chan workEnd), worked: map[model.PodRef]workEnd{}, outcomes: map[model.PodRef]error{},
		applies: make(chan struct{}, max(a.o.parallel, 1)), deletes: make(chan struct{}, stopsAtOnce),
	}
	r.applier.takenBack = a.o.takenBack(ctx, a.sess, beside)
	r.deleter.lines, r.deleter.opts.Report = a.o.output == "json", r.applier.report
	return r
}

// run works until everything is done, something has failed, or the time is over.
func (r *rolling) run(ctx context.Context, beside []*podspec.Desired) error {
	defer r.applier.stop()
	for _, d := range beside {
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
			// What the end of the time cuts off is no failure: outOfTime looks once more.
			if err := r.keepJobs(ctx); ctx.Err() == nil {
				outcome = err
			}
		}
	}
	r.printOutcomes(ctx)
	return outcome
}

// begin begins what there is to do now. Work on a pod that is wanted otherwise by now is ended first.
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

// isHeldBack reports whether a pod stays as it is until others are there.
func (r *rolling) isHeldBack(d *podspec.Desired) bool {
	return slices.ContainsFunc(r.all, func(x *expanded) bool {
		return x.Record.Key().Namespace == d.Pod.Namespace && slices.ContainsFunc(x.Waits, func(w workload.Wait) bool { return w.Pod == d.Pod.Name })
	})
}

// isFree reports whether nothing is done to a pod, and it is worth another try. Work for another version of it is ended.
func (r *rolling) isFree(ref model.PodRef, digest string) bool {
	if w, busy := r.working[ref]; busy {
		if w.digest != "" && w.digest != digest {
			w.cancel(errOutdated)
		}
		return false
	}
	last, worked := r.worked[ref]
	return !worked || last.digest != digest || r.sess.IO.Now().Sub(last.at) >= lookEach
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
			// Whether a Job has failed with it is the Job's to say.
			return nil
		}
		return err
	})
}

func (r *rolling) delete(ctx context.Context, ref model.PodRef) {
	r.work(ctx, ref, "", r.deletes, func(ctx context.Context) error { return r.deleter.one(ctx, ref) })
}

// work does something to a pod as soon as a turn is free.
func (r *rolling) work(ctx context.Context, ref model.PodRef, digest string, turns chan struct{}, do func(context.Context) error) {
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

// next waits until work has ended, or something else can have changed. It returns how the work ended.
func (r *rolling) next(ctx context.Context) error {
	stop := ctx.Done()
	if len(r.working) > 0 {
		// Work ends with the time, and what it says counts.
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

// printOutcomes writes what became of the pods that were applied, as one line of JSON.
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
