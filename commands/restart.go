package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

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

func newRestart(g *globals) *cobra.Command {
	o := &restartOptions{}
	cmd := &cobra.Command{
		Use:   "restart [flags] MANIFEST|POD [CONTAINER...]",
		Short: "Start containers of a pod anew",
		Long: "Stop containers with their hooks and grace periods and start them again, in one pass; without names all regular\n" +
			"containers and sidecars. The sandbox, its address and what init containers did stay. No restart delay holds them." +
			exitCodes("0 done", "1 error", "3 --wait: not ready in time, or never", "5 refused manifest", "130 interrupted"),
		Example:           "  podctl restart web\n  podctl restart web app --wait",
		ValidArgsFunction: g.completePodThenContainers,
		RunE:              func(cmd *cobra.Command, args []string) error { return runRestart(cmd.Context(), g, o, args) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.containers, "container", "c", nil, "Only these containers (repeatable)")
	f.Int64Var(&o.grace, "grace-period", -1, "Seconds the containers have to stop (-1: the pod's own)")
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show what would be done")
	f.BoolVar(&o.kubelet, "allow-kubelet", false, "Go on although a kubelet runs on the same runtime and may kill the pod")
	addWaitFlag(cmd, &o.wait)
	return cmd
}

func runRestart(ctx context.Context, g *globals, o *restartOptions, args []string) error {
	if len(args) == 0 {
		return usagef("restart needs a pod")
	}
	d, err := g.onePod(ctx, args[0])
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
	engine, err := g.connect()
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
		return g.showPlans(&o.planOptions, []*plan.Plan{p})
	}
	a := &applier{g: g, o: &o.applyOptions, engine: engine}
	return a.restart(ctx, d, opts)
}

// restart makes the pass that starts containers anew, and waits without asking for
// it again.
func (a *applier) restart(ctx context.Context, d *podspec.Desired, opts plan.Options) error {
	began := a.g.env.Now()
	run := a.options()
	run.Options = opts
	outcome, err := a.engine.Pods.Apply(ctx, d, run)
	if err == nil && a.o.wait != "" && outcome.Err() == nil {
		run.Restart = nil
		outcome, err = a.engine.Waiter.Wait(ctx, d, wait.Goal(a.o.wait), run)
	}
	return a.conclude(d, outcome, err, began)
}

// restarted are the names of the containers to start anew: those the user names, or
// all that run side by side.
func restarted(d *podspec.Desired, names []string) ([]string, error) {
	for _, name := range names {
		ref, ok := podspec.FindContainer(d.Pod, name)
		switch {
		case !ok:
			return nil, usagef("pod %s has no container %q; it has %s", model.RefOf(d.Pod), name, namesOf(d))
		case ref.Type == podspec.Init || ref.Type == podspec.Ephemeral:
			return nil, usagef("container %s runs once in the life of its sandbox; only regular containers and sidecars are restarted", name)
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
		return fmt.Errorf("pod %s has no container that was ever started; apply it first", model.RefOf(d.Pod))
	}
	if status := &pods[0].Status; model.IsOver(status) {
		return fmt.Errorf("pod %s has ended as %s; delete it first to run it again", model.RefOf(d.Pod), status.Phase)
	}
	return nil
}
