package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/wait"
)

type applyOptions struct {
	planOptions
	wait     string
	dryRun   bool
	parallel int
	plan     string
	// saved are the plans read from the file in plan.
	saved   savedPlans
	kubelet bool
	adopt   bool
	// doing is the verb for the result of workloads, for example "restarted"; empty for apply.
	doing string
	// kubectl is the kubectl command for the same change of a workload of the API server, without its name.
	kubectl string
}

// NewApply returns the command `podctl apply`.
func NewApply(sess *session.Session) *cobra.Command {
	o := &applyOptions{}
	cmd := &cobra.Command{
		Use:   "apply [flags] MANIFEST|POD...",
		Short: "Apply manifests in one sync pass, with the steps that plan shows",
		Long: "Apply manifests to the container runtime. " +
			"One sync pass runs exactly the steps that plan shows; --wait repeats passes.\n" +
			"POD applies the stored manifest of a pod again. " +
			"--all does so for all pods, and warns about source files that have\nchanged since.\n" +
			"\n" +
			"Manifests can contain Pods, Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs,\n" +
			"Services, ConfigMaps, Secrets, PersistentVolumeClaims, and PersistentVolumes on local disks. Kinds\n" +
			"that have no effect on one machine are skipped. Unknown kinds are refused.\n" +
			"\n" +
			"ConfigMaps, Secrets and PersistentVolumeClaims are stored first, " +
			"for all pods of their namespace that name them.\n" +
			"Objects from --configmap are not stored: " +
			"they serve only the pods of this call, and take precedence over stored ones.\n" +
			"\n" +
			"--prune then deletes objects of the set (--set or -l) that are no longer in the manifests. " +
			"Claims keep their data. " +
			"Use\nplan --prune to see the deletions first." +
			flags.ExitCodes(
				"0 success",
				"1 error",
				"3 a container is held because a ConfigMap or Secret is missing",
				"3 --wait: the state was not reached in time, or cannot be reached",
				"3 --exit-code: something has changed, even if only podctl's record of a pod, or is held or pending",
				"5 manifest refused",
				"6 --wait=completed: the pod has failed",
				"130 interrupted",
			),
		Example: "  podctl apply pod.yaml\n" +
			"  podctl apply --wait --timeout 2m pod.yaml\n" +
			"  podctl apply --all --probe   # from a timer\n" +
			"  podctl apply settings.yaml   # ConfigMaps and Secrets for pods that name them\n" +
			"  podctl apply --prune --set shop -R -f site/",
		ValidArgsFunction: completion.Manifests,
		RunE:              flags.Run(sess, o, runApply),
	}
	o.register(cmd)
	return cmd
}

// register defines the flags of apply.
func (o *applyOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	flags.Files(cmd, &o.Files, &o.Recursive)
	flags.SkipUnknown(cmd.Flags(), &o.SkipUnknown)
	flags.ConfigMaps(cmd, &o.ConfigMaps)
	f.BoolVar(&o.All, "all", false, "Apply all pods again, from their stored manifests")
	o.RegisterSelectors(f, "All namespaces (with --all)")
	o.RegisterSets(f)
	addWaitFlag(cmd, &o.wait)
	f.StringVar(&o.plan, "plan", "",
		"Execute the plan in this file (from plan --save), unless something has changed since")
	f.BoolVar(&o.kubelet, "allow-kubelet", false, "Continue even if a kubelet on the same runtime may kill the pods")
	f.BoolVar(&o.adopt, adoptFlag, false, adoptHelp)
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show the plan")
	f.IntVar(&o.parallel, "parallel", 4, "Number of pods to apply at the same time")
	f.Var(flags.Pull(&o.pull), "pull",
		"Pull policy for the passes of this command: always, missing or never. Later passes follow the manifest")
	f.BoolVar(&o.probe, "probe", false, "Run the pods' probes first")
	f.BoolVar(&o.ignore, "ignore-backoff", false, "Restart crashed containers without delay")
	o.admission.Register(f, false)
	f.BoolVar(&o.exitCode, "exit-code", false,
		"Exit with 3 if something has changed, or is held or pending (without --wait)")
	f.VarP(flags.Output(&o.output, "json"), "output", "o",
		"Output format: text, or json (one event per line, the outcomes in the last line)")
}

// adoptFlag moves pods from a runtime that no longer exists. With delete, it removes their remains.
const (
	adoptFlag = "adopt-endpoint"
	adoptHelp = "Move pods here from a runtime that no longer exists, if no process of the pods still runs"
)

// adoptEndpoint allows pods to move to this runtime. The user requests it with adoptFlag.
func adoptEndpoint(sess *session.Session) error {
	engine, err := sess.Engine()
	if err == nil {
		engine.Observer.AdoptEndpoint()
	}
	return err
}

// applyGoals are the values of --wait.
func applyGoals() []string { return []string{"started", "ready", "completed"} }

func addWaitFlag(cmd *cobra.Command, goal *string) {
	f := cmd.Flags()
	f.Var(&flags.Choice{Value: goal, Allowed: applyGoals()}, "wait",
		"Repeat passes until the pod is started, ready or completed")
	f.Lookup("wait").NoOptDefVal = "ready"
}

func runApply(ctx context.Context, sess *session.Session, o *applyOptions, args []string) error {
	o.For = selection.Apply
	if o.adopt {
		if err := adoptEndpoint(sess); err != nil {
			return err
		}
	}
	if o.dryRun {
		return runPlan(ctx, sess, &o.planOptions, args)
	}
	if engine := sess.Prefetch(ctx); engine != nil && !o.kubelet {
		go engine.Host.CheckKubelet() //nolint:errcheck // the pass reports the error
	}
	found, err := o.find(ctx, sess, args)
	if err != nil {
		return err
	}
	if err := o.refuse(ctx, sess, &found); err != nil {
		return err
	}
	o.showSkipped(sess, found.Skipped)
	applied := o.applyFound(ctx, sess, &found)
	return exit.WithUnreadable(ctx, exit.Join(ctx, applied, o.prune(ctx, sess, &found, applied)), found.Unreadable)
}

// refuse refuses what apply must not change, before it changes anything.
func (o *applyOptions) refuse(ctx context.Context, sess *session.Session, found *selection.Found) error {
	if err := refuseClusterPods(sess, found.Pods, kubectlApply); err != nil {
		return err
	}
	if p, err := o.findPruned(ctx, sess, found); p != nil || err != nil {
		if err = errors.Join(err, refusePruned(sess, p)); err != nil {
			return err
		}
	}
	return errors.Join(o.refuseConflicts(ctx, sess, found), o.noteMoves(sess, found))
}

// applyFound stores objects, and applies pods and workloads.
func (o *applyOptions) applyFound(ctx context.Context, sess *session.Session, found *selection.Found) error {
	if o.plan != "" {
		var err error
		if o.saved, err = readSaved(ctx, sess, o.plan); err != nil {
			return err
		}
	}
	stored := o.storeObjects(ctx, sess, found)
	switch {
	case len(found.Pods)+len(found.Workloads) == 0 || (stored != nil && stored.Error() != ""):
		return stored
	case len(found.Workloads) == 0:
		return exit.Join(ctx, stored, o.apply(ctx, sess, found.Pods))
	}
	return exit.Join(ctx, stored, o.applyWorkloads(ctx, sess, found))
}

// find finds the pods to apply.
func (o *applyOptions) find(ctx context.Context, sess *session.Session, args []string) (selection.Found, error) {
	switch {
	case o.plan != "" && (o.Prune || o.Set != ""):
		return selection.Found{}, exit.Usagef(
			"--plan executes plans of pods only, and cannot be used with --prune or --set")
	case o.plan != "" && (o.wait != "" || o.All || o.probe):
		return selection.Found{}, exit.Usagef("--plan cannot be used with --wait, --all or --probe")
	case len(args) == 0 && !o.Manifests() && !o.All:
		return selection.Found{}, exit.Usagef("apply needs a manifest, or --all")
	}
	found, err := o.Find(ctx, sess, args)
	if gone := (*state.NotFoundError)(nil); errors.As(err, &gone) && o.wait != "" {
		if i := slices.IndexFunc(args, func(arg string) bool { return slices.Contains(applyGoals(), arg) }); i >= 0 {
			err = fmt.Errorf("%w\n  use --wait=%s to wait for that state", err, args[i])
		}
	}
	return found, err
}

func (o *applyOptions) apply(ctx context.Context, sess *session.Session, pods []*podspec.Desired) error {
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	if len(pods) == 0 && o.Selects() {
		sess.IO.Note("No pods %s.", o.Where(sess.Flags.Namespace))
	}
	a := newApplier(sess, engine, o, len(pods))
	defer a.stop()
	if o.All {
		a.changed = sourceChanges(ctx, sess.Objects(), pods, func(file, change string, _ bool) string {
			return "source: " + file + " " + change
		})
	}
	a.reverted = o.reverted(ctx, sess, pods)
	a.follows = o.wait != "" && sess.AgentKeepsApplied(ctx)
	outcomes := selection.ForEach(pods, o.parallel, func(d *podspec.Desired) error { return a.one(ctx, d) })
	if o.output == "json" {
		a.printOutcomes(ctx, sess, pods, outcomes)
	}
	return exit.Join(ctx, outcomes...)
}

// applier applies several pods concurrently.
type applier struct {
	io     *terminal.IO
	engine *runtime.Engine
	o      *applyOptions
	report func(executor.Event)
	// progress is shown during the passes; nil for documents.
	progress *view.Progress
	// changed describes, per pod, how the source file differs from the applied version.
	changed map[model.PodRef]string
	// reverted has, per pod, a note if the agent will replace the manifest with that of a source.
	reverted map[model.PodRef]string
	// follows is set if an agent keeps the pods. A wait then makes only the first pass and leaves the others to the
	// agent.
	follows bool
	// done are the outcomes of the last pass of each pod.
	mu   sync.Mutex
	done map[model.PodRef]*executor.Outcome
	// reported are the digests of the manifests whose success was already printed.
	reported map[model.PodRef]string
}

func newApplier(sess *session.Session, engine *runtime.Engine, o *applyOptions, pods int) *applier {
	a := &applier{
		io:       sess.IO,
		engine:   engine,
		o:        o,
		done:     map[model.PodRef]*executor.Outcome{},
		reported: map[model.PodRef]string{},
	}
	if o.output == "json" {
		a.report = view.EventLines(sess.IO)
		return a
	}
	a.progress = view.NewProgress(sess.IO, pods)
	a.report, engine.Waiter.Report = a.progress.Report, a.progress.Obstacles
	return a
}

// stop removes the progress display.
func (a *applier) stop() {
	if a.progress != nil {
		a.progress.Stop()
	}
}

func (a *applier) one(ctx context.Context, d *podspec.Desired) error {
	opts := a.options()
	if a.o.probe {
		// On a slow machine, the time from the probe's answer to the pass may exceed the time in which the probe fails.
		opts.ProbedSince = a.io.Now()
		if err := selection.ProbeFirst(ctx, a.engine, d); err != nil {
			return err
		}
	}
	began := a.io.Now()
	if text := a.changed[model.RefOf(d.Pod)]; text != "" {
		a.warn(model.RefOf(d.Pod), text)
	}
	if text := a.reverted[model.RefOf(d.Pod)]; text != "" {
		a.warn(model.RefOf(d.Pod), "note: "+text)
	}
	if a.o.plan != "" {
		saved, err := a.o.saved.of(d)
		if err != nil {
			return err
		}
		opts.Saved = saved
	}
	var outcome *executor.Outcome
	var err error
	switch goal := wait.Goal(a.o.wait); {
	case goal == "":
		outcome, err = a.engine.Pods.Apply(ctx, d, opts)
	case a.follows:
		outcome, err = a.engine.Waiter.Follow(ctx, d, goal, opts)
	default:
		outcome, err = a.engine.Waiter.Wait(ctx, d, goal, opts)
	}
	return a.conclude(d, outcome, err, began)
}

// options returns the options for one pod. The remarks of its plans are reported before the first step. Each remark is
// reported once, even if a wait makes several plans.
func (a *applier) options() executor.Options {
	reported := map[string]bool{}
	return executor.Options{
		Options:      a.o.planning(),
		AllowKubelet: a.o.kubelet,
		Report:       a.report,
		Downloads:    a.progress != nil && a.progress.Live(),
		Planned: func(p *plan.Plan) {
			for _, text := range view.Remarks(p) {
				if !reported[text] {
					reported[text] = true
					a.warn(p.Pod, text)
				}
			}
		},
	}
}

// warn reports a warning that does not concern a step.
func (a *applier) warn(pod model.PodRef, text string) {
	a.report(executor.Event{Kind: executor.Warning, Pod: pod, Time: a.io.Now(), Detail: text})
}
