package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	runtimesession "github.com/podctl/podctl/runtime/session"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/syncpod"
	"github.com/podctl/podctl/runtime/wait"
	"github.com/podctl/podctl/runtime/workload"
)

type runOptions struct {
	applyOptions
	remove bool
	// from is the CronJob to run a Job of.
	from string
}

// NewRun returns the command `podctl run`.
func NewRun(sess *session.Session) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Annotations: exit.OwnFailure(exit.RunFailed),
		Use:         "run [flags] MANIFEST | run --from cronjob/NAME",
		Short:       "Run a pod to completion and exit with its exit code",
		Long: "Apply a pod and follow the logs of its containers until it has finished. " +
			"The exit code is that of the regular\ncontainer that failed first, or 0. " +
			"With --from, run a Job of a CronJob now, regardless of its schedule." +
			flags.ExitCodes(
				"0 the pod succeeded",
				"6 --from: the Job has failed",
				"1-124 the exit code of the container that failed first",
				"125 podctl could not run the pod, or an init container failed",
				"130 interrupted; the pod keeps running unless --rm is given",
				"141 the output was closed (podctl run | head); the pod keeps running unless --rm is given",
			),
		Example:           "  podctl run --rm pod.yaml\n  podctl run --from cronjob/backup",
		ValidArgsFunction: completion.Manifests,
		RunE:              flags.Run(sess, o, runRun),
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.Files, "filename", "f", nil, "Manifest: file, URL or -")
	f.StringVar(&o.from, "from", "", "Run a Job of this CronJob instead of a manifest: cronjob/NAME")
	f.BoolVar(&o.remove, "rm", false, "Delete the pod afterwards, even if interrupted")
	f.Var(flags.Pull(&o.pull), "pull",
		"Pull policy for the passes of this command: always, missing or never. Later passes follow the manifest")
	f.BoolVar(&o.kubelet, "allow-kubelet", false, "Continue even if a kubelet on the same runtime may kill the pod")
	return cmd
}

func runRun(ctx context.Context, sess *session.Session, o *runOptions, args []string) error {
	if o.from != "" && len(args)+len(o.Files) == 0 {
		return runFrom(ctx, sess, o, o.from)
	}
	if len(args)+len(o.Files) != 1 || o.from != "" {
		return &exit.CodeError{Code: exit.RunFailed, Err: exit.Usagef("run needs one manifest, or --from cronjob/NAME")}
	}
	pods, err := o.Pods(ctx, sess, args...)
	switch {
	case err != nil:
		return &exit.CodeError{Code: exit.RunFailed, Err: err}
	case len(pods) != 1:
		return fmt.Errorf("run takes a manifest of one pod, not of %d", len(pods))
	}
	if err = refuseClusterPods(sess, pods, kubectlApply); err != nil {
		return &exit.CodeError{Code: exit.RunFailed, Err: err}
	}
	engine, err := sess.Engine()
	if err == nil && !o.kubelet {
		// The check comes before the pass, which repeats it, so that --rm does not delete the pod after a refusal.
		err = engine.Host.CheckKubelet()
	}
	if err != nil {
		return err
	}
	defer terminal.KeepSIGPIPE()()
	r := &runner{io: sess.IO, engine: engine, pod: pods[0]}
	code, begun, err := r.runWhileRead(ctx, executor.Options{Options: o.planning(), AllowKubelet: o.kubelet})
	if superseded := (*syncpod.SupersededError)(nil); o.remove && begun && !errors.As(err, &superseded) {
		err = errors.Join(err, r.remove(ctx))
	}
	if err != nil {
		return err
	}
	return exit.With(code)
}

// runner runs one pod.
type runner struct {
	io     *terminal.IO
	engine *runtime.Engine
	pod    *podspec.Desired
}

// runWhileRead runs the pod until it ends or the output is closed.
func (r *runner) runWhileRead(ctx context.Context, opts executor.Options) (code int, begun bool, err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r.io.EndOnBrokenPipe(end)
	begun, err = r.run(ctx, opts)
	if err == nil {
		var pods []*v1.Pod
		if pods, err = r.engine.Lister.List(ctx, []*podspec.Desired{r.pod}); err == nil {
			code, err = podCode(pods[0])
		}
	}
	superseded := (*syncpod.SupersededError)(nil)
	if errors.Is(context.Cause(ctx), terminal.ErrBrokenPipe) && !errors.As(err, &superseded) {
		return exit.BrokenPipe, begun, nil
	}
	return code, begun, err
}

// run makes the passes and follows the logs concurrently. begun reports whether a pass has begun. Before that, --rm
// must not delete the pod.
func (r *runner) run(ctx context.Context, opts executor.Options) (begun bool, err error) {
	following, stop := context.WithCancel(ctx)
	defer stop()
	var logs sync.WaitGroup
	var once sync.Once
	follow := func() { once.Do(func() { logs.Go(func() { r.follow(following) }) }) }
	opts.Planned = func(p *plan.Plan) {
		begun = true
		for _, text := range view.Remarks(p) {
			r.io.NoteOnce("%s", text)
		}
		if len(p.Keeps) > 0 {
			// The pod was started before this command.
			follow()
		}
	}
	opts.Report = func(ev executor.Event) {
		switch {
		case ev.Kind == executor.StepFailed:
			// The step is retried. Without this note the user would see no reason until then.
			r.io.NoteOnce("%v", ev.Err)
		case ev.Kind == executor.StepDone && ev.Step.Kind == plan.StartContainer:
			follow()
		}
	}
	_, err = r.engine.Waiter.Wait(ctx, r.pod, wait.Completed, opts)
	if failed := (*wait.FailedError)(nil); errors.As(err, &failed) {
		err = nil // The exit code reports the failure.
	}
	if err == nil {
		// The followers end by themselves after the last line.
		logs.Wait()
	}
	stop()
	logs.Wait()
	return begun, err
}

// follow shows the logs of all containers.
func (r *runner) follow(ctx context.Context) {
	opts := runtimesession.LogOptions{Options: logfile.Options{Follow: true}}
	if len(podspec.Containers(r.pod.Pod)) > 1 {
		opts.Prefix = view.LogPrefix(r.io.OutColors(), "")
	}
	if err := r.engine.Sessions.Logs(ctx, r.pod, opts, r.io.Out, r.io.Err); err != nil && ctx.Err() == nil {
		r.io.Note("note: cannot follow the logs: %v", err)
	}
}

// remove deletes the pod, even if the user has interrupted the run. It does not delete a pod to which another manifest
// was applied meanwhile.
func (r *runner) remove(ctx context.Context) error {
	stored := *r.pod
	stored.Stored = true
	opts := executor.Options{Only: &stored}
	outcome, err := r.engine.Pods.Delete(context.WithoutCancel(ctx), model.RefOf(r.pod.Pod), opts)
	if superseded := (*syncpod.SupersededError)(nil); errors.As(err, &superseded) && superseded.Deleted {
		return nil
	}
	if err != nil {
		return err
	}
	return outcome.Err()
}

// podCode returns the exit code of the regular container that failed first, or zero. If the pod failed and no regular
// container did, it returns an error with the reason. The exit codes of init containers are not used.
func podCode(pod *v1.Pod) (int, error) {
	var first *v1.ContainerStateTerminated
	for i := range pod.Status.ContainerStatuses {
		t := pod.Status.ContainerStatuses[i].State.Terminated
		if t != nil && t.ExitCode != 0 && (first == nil || t.FinishedAt.Before(&first.FinishedAt)) {
			first = t
		}
	}
	switch {
	case first != nil:
		return int(first.ExitCode), nil
	case pod.Status.Phase == v1.PodSucceeded:
		return exit.OK, nil
	}
	return exit.RunFailed, fmt.Errorf("pod %s %s", model.RefOf(pod), wait.Ending(&pod.Status))
}

// runFrom starts a Job of a CronJob, as kubectl create job --from does, and waits until it ends.
func runFrom(ctx context.Context, sess *session.Session, o *runOptions, from string) (err error) {
	key, ok := selection.WorkloadNamed(from, sess.Flags.Namespace)
	if !ok || key.Kind != podspec.KindCronJob {
		return exit.Usagef("--from takes a CronJob, for example cronjob/backup")
	}
	r, err := sess.Workloads().Get(key)
	if err != nil {
		return err
	}
	sess.Loaded([]*podspec.Desired{r.Workload.Template})
	job := workload.JobOf(r.Workload, key.Name+"-manual-"+rand.String(5), time.Time{})
	o.wait, o.parallel = string(wait.Completed), 4
	err = o.applyWorkloads(ctx, sess, &selection.Found{Workloads: []*podspec.Workload{job}})
	if o.remove {
		err = errors.Join(err, removeJob(context.WithoutCancel(ctx), sess, controller.KeyOf(job)))
	}
	return err
}

// removeJob deletes a Job with its pods.
func removeJob(ctx context.Context, sess *session.Session, key state.ObjectKey) error {
	if _, err := sess.Workloads().Delete(ctx, key); err != nil {
		return err
	}
	sess.NotifyAgent(ctx)
	applied, _, err := state.Applied(sess.Flags.Layout())
	if err != nil {
		return err
	}
	return DeletePods(ctx, sess, selection.Refs(selection.DesiredOf(controller.PodsOf(key, applied))), "")
}
