package lifecycle

import (
	"context"
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
	"github.com/podctl/podctl/runtime/wait"
)

type restartOptions struct {
	applyOptions
	containers []string
	grace      int64
	dryRun     bool
}

// NewRestart is `podctl restart`.
func NewRestart(sess *session.Session) *cobra.Command {
	o := &restartOptions{}
	cmd := &cobra.Command{
		Use:   "restart [flags] MANIFEST|POD [CONTAINER...]",
		Short: "Restart containers of a pod",
		Long: "Stop containers, with their hooks and grace periods, and start them again in one pass. Without names: all regular\n" +
			"containers and sidecars. The sandbox, its address and completed init containers are kept. No restart delay applies." +
			flags.ExitCodes("0 success", "1 error", "3 --wait: not ready in time, or cannot become ready", "5 manifest refused", "130 interrupted"),
		Example:           "  podctl restart web\n  podctl restart web app --wait",
		ValidArgsFunction: completion.Of(sess.Flags).PodThenContainers,
		RunE:              func(cmd *cobra.Command, args []string) error { return runRestart(cmd.Context(), sess, o, args) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.containers, "container", "c", nil, "Only these containers (repeatable)")
	f.Int64Var(&o.grace, "grace-period", -1, "Seconds that containers have to stop (-1: as the pod says)")
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show the plan")
	f.BoolVar(&o.kubelet, "allow-kubelet", false, "Continue although a kubelet on the same runtime may kill the pod")
	addWaitFlag(cmd, &o.wait)
	return cmd
}

func runRestart(ctx context.Context, sess *session.Session, o *restartOptions, args []string) error {
	if len(args) == 0 {
		return exit.Usagef("restart needs a pod")
	}
	d, err := selection.One(ctx, sess, args[0])
	if err != nil {
		return err
	}
	names, err := restarted(d, append(o.containers, args[1:]...))
	if err != nil {
		return err
	}
	opts := plan.Options{Restart: names}
	if o.grace >= 0 {
		opts.GracePeriod = &o.grace
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	if err := stillRuns(ctx, engine, d); err != nil {
		return err
	}
	if o.dryRun {
		p, err := engine.Pods.Plan(ctx, d, opts)
		if err != nil {
			return err
		}
		return showPlans(sess, &o.planOptions, []*plan.Plan{p})
	}
	a := newApplier(sess, engine, &o.applyOptions, 1)
	defer a.stop()
	return a.restart(ctx, d, opts)
}

// restart makes the pass that restarts containers, and waits without restarting them again.
func (a *applier) restart(ctx context.Context, d *podspec.Desired, opts plan.Options) error {
	began := a.io.Now()
	run := a.options()
	run.Options = opts
	outcome, err := a.engine.Pods.Apply(ctx, d, run)
	if err == nil && a.o.wait != "" && outcome.Err() == nil {
		run.Restart = nil
		outcome, err = a.engine.Waiter.Wait(ctx, d, wait.Goal(a.o.wait), run)
	}
	return a.conclude(d, outcome, err, began)
}

// restarted are the names of the containers to restart: those the user names, or
// all regular containers and sidecars.
func restarted(d *podspec.Desired, names []string) ([]string, error) {
	for _, name := range names {
		ref, ok := podspec.FindContainer(d.Pod, name)
		switch {
		case !ok:
			return nil, exit.Usagef("pod %s has no container %q; it has %s", model.RefOf(d.Pod), name, selection.ContainerNames(d))
		case ref.Type == podspec.Init || ref.Type == podspec.Ephemeral:
			return nil, exit.Usagef("container %s runs once per sandbox; only regular containers and sidecars can be restarted", name)
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

// stillRuns refuses a pod that has ended: nothing of it is started again.
func stillRuns(ctx context.Context, engine *runtime.Engine, d *podspec.Desired) error {
	pods, err := engine.Lister.List(ctx, []*podspec.Desired{d})
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(pods[0].Status.ContainerStatuses, func(s v1.ContainerStatus) bool { return s.ContainerID != "" })
	if !known {
		return fmt.Errorf("pod %s was never started; apply it first", model.RefOf(d.Pod))
	}
	if status := &pods[0].Status; model.IsOver(status) {
		return fmt.Errorf("pod %s has ended as %s; delete it first to run it again", model.RefOf(d.Pod), status.Phase)
	}
	return nil
}
