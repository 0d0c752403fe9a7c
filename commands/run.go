package commands

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/session"
	"github.com/podctl/podctl/runtime/syncpod"
	"github.com/podctl/podctl/runtime/wait"
)

// exitRunFailed is podctl's own failure where the exit code is a container's.
const exitRunFailed = 125

type runOptions struct {
	applyOptions
	remove bool
}

func newRun(g *globals) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Annotations: ownFailure(exitRunFailed),
		Use:         "run [flags] MANIFEST",
		Short:       "Apply a pod, follow its logs and exit as it does",
		Long: "Apply a pod, follow the logs of its containers until it has finished, and exit with its exit code: that of\n" +
			"the regular container that failed first, or zero." +
			exitCodes("0 the pod succeeded", "1-124 the exit code of the container that failed first", "125 podctl could not run it, or an init container failed",
				"130 interrupted; the pod goes on, unless --rm takes it away",
				"141 nobody reads what it shows any more (podctl run | head); as for 130"),
		Example:           "  podctl run --rm job.yaml",
		ValidArgsFunction: completeManifests,
		RunE:              func(cmd *cobra.Command, args []string) error { return runRun(cmd.Context(), g, o, args) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "Manifest: file, URL or -")
	f.BoolVar(&o.remove, "rm", false, "Delete the pod afterwards, also when interrupted")
	f.Var(pullFlag(&o.pull), "pull", "Override the pull policy: always, missing or never")
	f.BoolVar(&o.kubelet, "allow-kubelet", false, "Go on although a kubelet runs on the same runtime and may kill the pod")
	return cmd
}

func runRun(ctx context.Context, g *globals, o *runOptions, args []string) error {
	if n := len(args) + len(o.files); n != 1 {
		return &codeError{code: exitRunFailed, err: usagef("podctl run takes one manifest; this is %d", n)}
	}
	pods, err := g.desired(ctx, o.selection, args)
	switch {
	case err != nil:
		return &codeError{code: exitRunFailed, err: err}
	case len(pods) != 1:
		return fmt.Errorf("run takes a manifest of one pod; this is %d", len(pods))
	}
	engine, err := g.connect()
	if err == nil && !o.kubelet {
		// Before the pass, which asks for it too: --rm must not follow a refusal.
		err = engine.Host.CheckKubelet()
	}
	if err != nil {
		return err
	}
	defer keepSIGPIPE()()
	code, begun, err := g.runWhileRead(ctx, engine, o, pods[0])
	if superseded := (*syncpod.SupersededError)(nil); o.remove && begun && !errors.As(err, &superseded) {
		err = errors.Join(err, g.removeAfter(ctx, engine, pods[0]))
	}
	if err != nil {
		return err
	}
	return withCode(code)
}

// runWhileRead runs the pod until it ends, or until nobody reads its logs any more.
func (g *globals) runWhileRead(ctx context.Context, engine *runtime.Engine, o *runOptions, d *podspec.Desired) (code int, begun bool, err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	g.endUnread(end)
	code, begun, err = g.runPod(ctx, engine, o, d)
	if superseded := (*syncpod.SupersededError)(nil); errors.Is(context.Cause(ctx), errUnread) && !errors.As(err, &superseded) {
		return exitUnread, begun, nil
	}
	return code, begun, err
}

// runPod makes the passes and follows the logs, side by side. Until a pass has begun the
// pod is none of this process's.
func (g *globals) runPod(ctx context.Context, engine *runtime.Engine, o *runOptions, d *podspec.Desired) (code int, begun bool, err error) {
	following, stop := context.WithCancel(ctx)
	defer stop()
	var logs sync.WaitGroup
	opts := executor.Options{Options: o.planning(), AllowKubelet: o.kubelet}
	var once sync.Once
	follow := func() { once.Do(func() { logs.Go(func() { g.followAll(following, engine, d) }) }) }
	opts.Planned = func(p *plan.Plan) {
		begun = true
		for _, text := range remarks(p) {
			g.noteOnce("%s", text)
		}
		if len(p.Keeps) > 0 {
			// It was begun before.
			follow()
		}
	}
	opts.Report = func(ev executor.Event) {
		switch {
		case ev.Kind == executor.StepFailed:
			// It is tried again, and until then there would be nothing to see.
			g.noteOnce("%v", ev.Err)
		case ev.Kind == executor.StepDone && ev.Step.Kind == plan.StartContainer:
			follow()
		}
	}
	_, err = engine.Waiter.Wait(ctx, d, wait.Completed, opts)
	if err == nil {
		// The followers end by themselves, once all is shown.
		logs.Wait()
	}
	stop()
	logs.Wait()
	if err != nil {
		return exitRunFailed, begun, err
	}
	pods, err := engine.Lister.List(ctx, []*podspec.Desired{d})
	if err != nil {
		return exitRunFailed, begun, err
	}
	code, err = podCode(pods[0])
	return code, begun, err
}

func (g *globals) followAll(ctx context.Context, engine *runtime.Engine, d *podspec.Desired) {
	opts := session.LogOptions{Options: logfile.Options{Follow: true}}
	if len(podspec.Containers(d.Pod)) > 1 {
		opts.Prefix = g.logPrefix("")
	}
	if err := engine.Sessions.Logs(ctx, d, opts, g.env.Out, g.env.Err); err != nil && ctx.Err() == nil {
		g.note("note: the logs cannot be followed: %v", err)
	}
}

// removeAfter deletes the pod also when the user has interrupted the run, and leaves it
// alone when somebody else has applied another manifest to it.
func (g *globals) removeAfter(ctx context.Context, engine *runtime.Engine, d *podspec.Desired) error {
	stored := *d
	stored.Stored = true
	outcome, err := engine.Pods.Delete(context.WithoutCancel(ctx), model.RefOf(d.Pod), executor.Options{Only: &stored})
	if superseded := (*syncpod.SupersededError)(nil); errors.As(err, &superseded) && superseded.Deleted {
		return nil
	}
	if err != nil {
		return err
	}
	return outcome.Err()
}

// podCode is the exit code of the regular container that failed first, or zero. A pod that
// failed without one says why: its init containers have no code of their own here.
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
		return exitOK, nil
	}
	return exitRunFailed, fmt.Errorf("pod %s %s", model.RefOf(pod), wait.Ending(&pod.Status))
}
