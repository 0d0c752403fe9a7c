package commands

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

type deleteOptions struct {
	planOptions
	grace  int64
	force  bool
	dryRun bool
	all    bool
	// volumes removes the pods' claims as well.
	volumes  bool
	parallel int
}

func newDelete(g *globals) *cobra.Command {
	o := &deleteOptions{}
	cmd := &cobra.Command{
		Use:     "delete [flags] MANIFEST|POD...",
		Aliases: []string{"rm"},
		Short:   "Stop and remove pods",
		Long: "Stop pods with their preStop hooks and grace periods, and remove everything podctl made for them.\n" +
			"Their logs are set aside." + exitCodes("0 gone", "1 error", "5 refused manifest", "130 interrupted"),
		Example:           "  podctl delete web\n  podctl delete -f pod.yaml --grace-period 5",
		ValidArgsFunction: g.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withUnread(cmd.Context(), runDelete(cmd.Context(), g, o, args))
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.BoolVar(&o.all, "all", false, "Every pod that podctl applied in the namespace")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "With --all: pods of all namespaces")
	f.Int64Var(&o.grace, "grace-period", -1, "Seconds the containers have to stop (-1: the pod's own)")
	f.BoolVar(&o.force, "force", false, "Stop at once: no hooks, no grace period")
	f.BoolVar(&o.volumes, "volumes", false, "Also remove the persistent volume claims that no other pod uses, with their data")
	f.IntVar(&o.parallel, "parallel", stoppedAtATime, "How many pods are stopped at a time")
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show what would be done")
	f.VarP(outputFlag(&o.output, "json", "yaml"), "output", "o", "With --dry-run: text, json or yaml")
	return cmd
}

func runDelete(ctx context.Context, g *globals, o *deleteOptions, args []string) error {
	if len(args)+len(o.files) == 0 && !o.all {
		return usagef("delete needs a manifest or a pod, or --all")
	}
	if !isText(o.output) && !o.dryRun {
		return usagef("-o is the form of a plan, which --dry-run shows; a deletion has none")
	}
	o.quiet, o.thorough = true, true
	g.warm(ctx)
	pods, absent := g.desired(ctx, o.selection, args)
	if len(pods) == 0 {
		return absent
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	if o.dryRun {
		err = g.planDeletion(ctx, engine, o, pods)
	} else {
		err = newDeleter(g, engine, o, refs(pods)).run(ctx)
	}
	// One name that is not there does not keep the others, as in kubectl.
	return errors.Join(err, absent)
}

func (o *deleteOptions) planning() plan.Options {
	opts := plan.Options{RemoveVolumes: o.volumes}
	switch {
	case o.force:
		none := int64(0)
		opts.GracePeriod = &none
	case o.grace >= 0:
		opts.GracePeriod = &o.grace
	}
	return opts
}

func (g *globals) planDeletion(ctx context.Context, engine *runtime.Engine, o *deleteOptions, pods []*podspec.Desired) error {
	var plans []*plan.Plan
	unknown := inTurn(ctx, refs(pods), func(ref model.PodRef) error {
		p, err := engine.Pods.PlanDeletion(ctx, ref, o.planning())
		if err == nil {
			plans = append(plans, p)
		}
		return err
	})
	if unknown != nil {
		return g.showSome(ctx, &o.planOptions, plans, unknown)
	}
	return g.showPlans(&o.planOptions, plans)
}

// stoppedAtATime is how many pods are stopped at a time unless the user says otherwise.
const stoppedAtATime = 10

// deleter deletes several pods side by side: most of it is waiting for their containers to
// end.
type deleter struct {
	g      *globals
	o      *deleteOptions
	engine *runtime.Engine
	pods   []model.PodRef
	report func(executor.Event)
}

func newDeleter(g *globals, engine *runtime.Engine, o *deleteOptions, pods []model.PodRef) *deleter {
	return &deleter{g: g, o: o, engine: engine, pods: pods, report: g.progress(len(pods) > 1)}
}

func (d *deleter) run(ctx context.Context) error {
	atATime := d.o.parallel
	if d.o.volumes {
		// The last pod that uses a claim takes it along, and there has to be a last one.
		atATime = 1
	}
	return together(ctx, sideBySide(d.pods, atATime, func(ref model.PodRef) error { return d.one(ctx, ref) }))
}

func (d *deleter) one(ctx context.Context, ref model.PodRef) error {
	outcome, err := d.engine.Pods.Delete(ctx, ref, executor.Options{Options: d.o.planning(), Report: d.report})
	if err != nil {
		return leftOver(outcome, err)
	}
	if err := outcome.Err(); err != nil {
		return err
	}
	if len(outcome.Plan.Steps) == 0 {
		d.g.print("pod %s is not there", ref)
		return nil
	}
	d.g.print("pod %s deleted", ref)
	return nil
}
