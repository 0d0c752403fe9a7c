package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/wait"
)

type restartOptions struct {
	applyOptions
	containers []string
	grace      int64
}

// NewRestart returns the command `podctl restart`.
func NewRestart(sess *session.Session) *cobra.Command {
	o := &restartOptions{}
	cmd := &cobra.Command{
		Use:   "restart [flags] MANIFEST|POD [CONTAINER...]",
		Short: "Restart the containers of pods",
		Long: "Stop containers with their hooks and grace periods, and start them again in one pass. " +
			"Without container names, podctl\nrestarts all regular containers and sidecars. " +
			"The sandbox, its address and completed init containers are kept, and no\nrestart delay applies. " +
			"With --all or a selector, pods that have ended or were never started are skipped with a note.\n" +
			"An evicted pod is recreated." +
			flags.ExitCodes(
				"0 success",
				"1 error",
				"3 --wait: not ready in time, or cannot become ready",
				"5 manifest refused",
				"130 interrupted",
			),
		Example:           "  podctl restart web\n  podctl restart web app --wait\n  podctl restart -l app=web -c app",
		ValidArgsFunction: completion.Of(sess.Flags).PodThenContainers,
		RunE:              flags.Run(sess, o, runRestart),
	}
	f := cmd.Flags()
	f.BoolVar(&o.All, "all", false, "Restart all pods that podctl applied in the namespace")
	o.RegisterSelectors(f, "All namespaces (with --all or a selector)")
	f.IntVar(&o.parallel, "parallel", 4, "Number of pods to restart at the same time")
	f.StringSliceVarP(&o.containers, "container", "c", nil, "Container to restart (repeatable)")
	f.Int64Var(&o.grace, "grace-period", -1, "Seconds that containers get to stop (-1: the grace period of the pod)")
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show the plan")
	f.BoolVar(&o.kubelet, "allow-kubelet", false, "Continue even if a kubelet on the same runtime may kill the pods")
	addWaitFlag(cmd, &o.wait)
	return cmd
}

func runRestart(ctx context.Context, sess *session.Session, o *restartOptions, args []string) error {
	if o.IsEmpty(args) {
		return exit.Usagef("restart needs a pod, --all, or a selector")
	}
	pods, err := o.find(ctx, sess, args)
	if err != nil {
		return err
	}
	work := make([]*restart, 0, len(pods))
	for _, d := range pods {
		// Report a container that a pod does not have before any pod is restarted.
		names, wrong := restarted(d, slices.Concat(o.containers, args[min(len(args), 1):]))
		if wrong != nil {
			return wrong
		}
		r := &restart{pod: d, opts: plan.Options{Restart: names}}
		if o.grace >= 0 {
			r.opts.GracePeriod = &o.grace
		}
		work = append(work, r)
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	if work, err = o.running(ctx, sess, engine, work); err != nil {
		return err
	}
	if o.dryRun {
		return o.show(ctx, sess, engine, work)
	}
	a := newApplier(sess, engine, &o.applyOptions, len(work))
	defer a.stop()
	outcomes := selection.ForEach(work, o.parallel, func(r *restart) error { return a.restart(ctx, r.pod, r.opts) })
	return exit.Join(ctx, outcomes...)
}

// find finds the pods to restart: one by name, or several by selector.
func (o *restartOptions) find(ctx context.Context, sess *session.Session, args []string) ([]*podspec.Desired, error) {
	if len(args) > 0 && !o.All && !o.Selects() {
		if _, ok := selection.WorkloadNamed(args[0], sess.Flags.Namespace); ok {
			return selection.Selection{}.Pods(ctx, sess, args[0])
		}
		d, err := selection.One(ctx, sess, selection.Work, args[0])
		return []*podspec.Desired{d}, err
	}
	o.For = selection.Reach
	found, err := o.Find(ctx, sess, args)
	if err = errors.Join(err, found.Unreadable); err == nil && len(found.Pods) == 0 {
		sess.IO.Note("No pods %s.", o.Where(sess.Flags.Namespace))
	}
	return found.Pods, err
}

// restart is a pod with the containers to restart.
type restart struct {
	pod  *podspec.Desired
	opts plan.Options
}

// running returns the pods that run. A pod that does not run is an error if it was named, and a note if it was
// selected.
func (o *restartOptions) running(
	ctx context.Context, sess *session.Session, engine *runtime.Engine, work []*restart,
) ([]*restart, error) {
	var run []*restart
	for _, r := range work {
		reason, err := notRunning(ctx, engine, sess.Flags.Layout(), r.pod)
		switch {
		case err != nil:
			return nil, err
		case reason == nil:
			run = append(run, r)
		case !o.All && !o.Selects():
			return nil, reason
		default:
			sess.IO.Note("note: not restarted: %v", reason)
		}
	}
	return run, nil
}

// show prints the plans.
func (o *restartOptions) show(
	ctx context.Context, sess *session.Session, engine *runtime.Engine, work []*restart,
) error {
	plans, outcomes := selection.Look(work, func(r *restart) (*plan.Plan, error) {
		return engine.Pods.Plan(ctx, r.pod, r.opts)
	})
	if err := selection.Outcome(ctx, outcomes); err != nil {
		return err
	}
	if len(plans) == 0 {
		return nil
	}
	return showPlans(sess, &o.planOptions, plans)
}

// restart makes the pass that restarts containers. With --wait, the later passes do not restart them again.
func (a *applier) restart(ctx context.Context, d *podspec.Desired, opts plan.Options) error {
	began := a.io.Now()
	run := a.options()
	// A restart of containers changes no object of the API server.
	run.Options, run.ClusterPods = opts, true
	outcome, err := a.engine.Pods.Apply(ctx, d, run)
	if err == nil && a.o.wait != "" && outcome.Err() == nil {
		run.Restart = nil
		outcome, err = a.engine.Waiter.Wait(ctx, d, wait.Goal(a.o.wait), run)
	}
	return a.conclude(d, outcome, err, began)
}

// restarted returns the names of the containers to restart: the given names, or all regular containers and sidecars.
func restarted(d *podspec.Desired, names []string) ([]string, error) {
	for _, name := range names {
		ref, ok := podspec.FindContainer(d.Pod, name)
		switch {
		case !ok:
			return nil, exit.Usagef("pod %s has no container %q; it has %s",
				model.RefOf(d.Pod), name, selection.ContainerNames(d))
		case ref.Type == podspec.Init || ref.Type == podspec.Ephemeral:
			return nil, exit.Usagef(
				"container %s runs once per sandbox; only regular containers and sidecars can be restarted", name)
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	for _, ref := range podspec.Containers(d.Pod) {
		if ref.Type == podspec.Regular || ref.Type == podspec.Sidecar {
			names = append(names, ref.Name)
		}
	}
	return names, nil
}

// notRunning returns the reason why a pod cannot be restarted: it was never started, or has ended. The reason is nil if
// it can.
func notRunning(
	ctx context.Context, engine *runtime.Engine, layout state.Layout, d *podspec.Desired,
) (reason, err error) {
	pods, err := engine.Lister.List(ctx, []*podspec.Desired{d})
	if err != nil {
		return nil, err
	}
	ended := model.Reason(pods[0].Status.Reason)
	if (ended == model.Evicted || ended == model.Preempting) && !d.FromCluster() {
		return nil, nil // An evicted or preempted pod is recreated.
	}
	known := slices.ContainsFunc(pods[0].Status.ContainerStatuses, func(s v1.ContainerStatus) bool {
		return s.ContainerID != ""
	})
	// While a postStart hook runs, its container runs too, but is not in the status yet.
	if !known && len(layout.Pod(d.Pod.UID).Hooks().Running()) == 0 {
		return fmt.Errorf("pod %s was never started; apply it first", model.RefOf(d.Pod)), nil
	}
	switch status := &pods[0].Status; {
	case model.IsOver(status) && d.FromCluster():
		reason = fmt.Errorf("pod %s has ended as %s, and does not run again: `%s` deletes it",
			model.RefOf(d.Pod), status.Phase, (&deleteOptions{grace: -1}).kubectlDelete(d))
		return reason, nil
	case model.IsOver(status):
		reason = fmt.Errorf("pod %s has ended as %s; delete it first to run it again", model.RefOf(d.Pod), status.Phase)
		return reason, nil
	}
	return nil, nil
}
