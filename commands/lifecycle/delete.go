package lifecycle

import (
	"context"
	"errors"
	"slices"

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
)

type deleteOptions struct {
	planOptions
	grace  int64
	force  bool
	dryRun bool
	// absent is --ignore-not-found.
	absent bool
	// volumes also removes the claims of the pods.
	volumes  bool
	parallel int
	adopt    bool
	// deleted are the workloads that this command deletes.
	deleted []state.ObjectKey
}

// NewDelete returns the command `podctl delete`.
func NewDelete(sess *session.Session) *cobra.Command {
	o := &deleteOptions{}
	cmd := &cobra.Command{
		Use:     "delete [flags] MANIFEST|POD|KIND/NAME... | delete [flags] KIND[,KIND...] [NAME...]",
		Aliases: []string{"rm"},
		Short:   "Delete pods, workloads, Services, ConfigMaps, Secrets and claims",
		Long: "Stop pods with their preStop hooks and grace periods, " +
			"and remove everything that podctl created for them. " +
			"Their logs\nare archived until `podctl prune`, or for a day with an agent. " +
			"Workloads, such as deployment/NAME or job/NAME, are\ndeleted with their pods.\n" +
			"\n" +
			"service/NAME, configmap/NAME, secret/NAME and pvc/NAME delete stored objects. " +
			"Running pods keep their values. " +
			"The data\nof a claim stays until `podctl delete --volumes` deletes its last pod, " +
			"or until `podctl prune --volumes`.\n" +
			"\n" +
			"--all deletes everything in the namespace: " +
			"pods, workloads, Services, ConfigMaps and Secrets, and claims with\n--volumes. " +
			"KIND --all and KIND -l SELECTOR delete only objects of that kind. " +
			"The kind \"all\" stands for pods, workloads\nand Services." +
			flags.ExitCodes("0 deleted", "1 error", "5 manifest refused", "130 interrupted"),
		Example: "  podctl delete web\n" +
			"  podctl delete -f pod.yaml --grace-period 5\n" +
			"  podctl delete --field-selector status.phase=Succeeded\n" +
			"  podctl delete configmap/web secret/web\n" +
			"  podctl delete svc,deploy -l app=web\n" +
			"  podctl delete -n shop --all --volumes",
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE:              flags.Run(sess, o, runDelete),
	}
	f := cmd.Flags()
	flags.Files(cmd, &o.Files, &o.Recursive)
	flags.SkipUnknown(cmd.Flags(), &o.SkipUnknown)
	f.BoolVar(&o.All, "all", false, "Delete everything in the namespace, or all objects of the given kinds")
	o.RegisterSelectors(f, "All namespaces (with --all or a selector)")
	f.BoolVar(&o.absent, "ignore-not-found", false, "Treat a pod that does not exist as deleted")
	f.Int64Var(&o.grace, "grace-period", -1, "Seconds that containers get to stop (-1: the grace period of the pod)")
	f.BoolVar(&o.force, "force", false, "Stop immediately, without hooks or grace period")
	f.BoolVar(&o.volumes, "volumes", false,
		"Also delete persistent volume claims that no other pod uses, with their data")
	f.IntVar(&o.parallel, "parallel", stopsAtOnce, "Number of pods to stop at the same time")
	f.BoolVar(&o.adopt, adoptFlag, false,
		"Also delete pods of a runtime that no longer exists, if none of their processes still runs")
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show the plan")
	f.VarP(flags.Output(&o.output, "json", "yaml"), "output", "o", "Output format with --dry-run: text, json or yaml")
	return cmd
}

func runDelete(ctx context.Context, sess *session.Session, o *deleteOptions, args []string) error {
	if o.IsEmpty(args) {
		return exit.Usagef("delete needs a manifest, a pod, KIND/NAME, --all, or a selector")
	}
	if !terminal.IsText(o.output) && !o.dryRun {
		return exit.Usagef("-o needs --dry-run")
	}
	targets, err := o.targets(sess, args)
	if err != nil {
		return err
	}
	unreadable := o.addStored(sess, &targets)
	if o.namesPods(&targets) || len(targets.Workloads) > 0 {
		sess.Prefetch(ctx)
	}
	found, absent := o.find(ctx, sess, &targets)
	found.Unreadable = errors.Join(found.Unreadable, unreadable)
	if err = refuseClusterPods(sess, found.Pods, o.kubectlDelete); err != nil {
		return err
	}
	if absent, err = o.deleteWorkloads(ctx, sess, targets.Workloads, &found, absent); err != nil {
		return err
	}
	if absent == nil {
		o.noteNothing(sess, &targets, &found)
	}
	outcome := exit.Join(ctx,
		o.deletePods(ctx, sess, found, absent),
		o.deleteObjects(ctx, sess, targets.Objects, &found),
		o.deleteData(ctx, sess, &targets))
	return exit.WithUnreadable(ctx, outcome, found.Unreadable)
}

// targets parses the arguments. A kind without names needs --all or a selector.
func (o *deleteOptions) targets(sess *session.Session, args []string) (selection.Targets, error) {
	targets, err := selection.ParseTargets(args, sess.Flags.Namespace)
	switch {
	case err != nil:
		return targets, err
	case len(targets.Objects)+len(targets.Workloads) > 0 && (o.All || o.Selects()):
		return targets, exit.Usagef("--all and selectors cannot be used with names")
	case o.volumes && len(targets.Objects) > 0:
		return targets, exit.Usagef(
			"--volumes is for pods: the data of a claim is deleted with its last pod, or with `podctl prune --volumes`")
	}
	return targets, o.checkKinds(&targets)
}

// checkKinds refuses kinds without --all or a selector. Without kinds, --all stands for all kinds, claims only with
// --volumes, and a selector alone stands for pods.
func (o *deleteOptions) checkKinds(targets *selection.Targets) error {
	nothing := len(targets.Pods)+len(targets.Objects)+len(targets.Workloads) == 0 && !o.Manifests()
	switch {
	case len(targets.Kinds) > 0 && o.Manifests():
		return exit.Usagef("kinds cannot be used with manifests")
	case len(targets.Kinds) > 0 && !o.All && !o.Selects():
		return exit.Usagef("delete needs names, --all, or a selector with kinds")
	case len(targets.Kinds) == 0 && nothing && o.Selects():
		targets.Kinds = []string{podspec.KindPod}
	case len(targets.Kinds) == 0 && nothing:
		for _, kind := range podspec.Kinds() {
			if kind.Name != podspec.KindClaim || o.volumes {
				targets.Kinds = append(targets.Kinds, kind.Name)
			}
		}
	}
	if o.Fields != "" && slices.ContainsFunc(targets.Kinds, func(kind string) bool { return kind != podspec.KindPod }) {
		return exit.Usagef("--field-selector is for pods")
	}
	return nil
}

// namesPods reports whether the command line names pods or manifests.
func (o *deleteOptions) namesPods(targets *selection.Targets) bool {
	return len(targets.Pods) > 0 || o.Manifests() || slices.Contains(targets.Kinds, podspec.KindPod)
}

// find finds the pods, and the other objects of the manifests. If some of several names do not exist, the error lists
// them.
func (o *deleteOptions) find(
	ctx context.Context, sess *session.Session, targets *selection.Targets,
) (selection.Found, error) {
	if !o.namesPods(targets) {
		return selection.Found{}, nil
	}
	s := o.Selection
	if s.For = selection.Delete; len(targets.Kinds) > 0 {
		// Workloads are already in targets: --all stands for all pods, including those of workloads.
		s.For = selection.DeleteKinds
	}
	found, absent := s.Find(ctx, sess, targets.Pods)
	if o.absent {
		absent = selection.WithoutAbsent(absent)
	}
	return found, absent
}

// noteNothing prints a note if there is nothing to delete.
func (o *deleteOptions) noteNothing(sess *session.Session, targets *selection.Targets, found *selection.Found) {
	if len(targets.Kinds) == 0 || len(targets.Objects)+len(targets.Workloads)+len(found.Pods) > 0 {
		return
	}
	what := "Nothing to delete"
	if targets.Kind() == podspec.KindPod {
		what = "No pods"
	}
	sess.IO.Note("%s %s.", what, o.Where(sess.Flags.Namespace))
}

// deletePods deletes the pods that were found, even if others do not exist, as kubectl does.
func (o *deleteOptions) deletePods(
	ctx context.Context, sess *session.Session, found selection.Found, absent error,
) error {
	if len(found.Pods) == 0 {
		return absent
	}
	engine, err := sess.Engine()
	if err == nil && o.adopt {
		err = adoptEndpoint(sess)
	}
	if err == nil {
		err = errors.Join(o.delete(ctx, sess, engine, selection.Refs(found.Pods)), absent)
		o.noteOwners(sess, found.Pods)
	}
	return err
}

func (o *deleteOptions) delete(
	ctx context.Context, sess *session.Session, engine *runtime.Engine, pods []model.PodRef,
) error {
	if o.dryRun {
		return planDeletion(ctx, sess, engine, o, pods)
	}
	limit := o.parallel
	if o.volumes {
		// The data of a claim is deleted with its last pod, so the pods must be deleted one after the other.
		limit = 1
	}
	return newDeleter(sess, engine, o.planning()).delete(ctx, pods, limit)
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

func planDeletion(
	ctx context.Context, sess *session.Session, engine *runtime.Engine, o *deleteOptions, pods []model.PodRef,
) error {
	plans, outcomes := selection.Look(pods, func(ref model.PodRef) (*plan.Plan, error) {
		return engine.Pods.PlanDeletion(ctx, ref, o.planning())
	})
	if err := selection.Outcome(ctx, outcomes); err != nil {
		return o.showSome(ctx, sess, plans, unplanned(pods, outcomes), err)
	}
	o.deletes = true
	return showPlans(sess, &o.planOptions, plans)
}

// stopsAtOnce is the default number of pods that are stopped concurrently.
const stopsAtOnce = 10

// DeletePods deletes pods in the same way as `podctl delete` without flags. With the output json, it prints events as
// lines.
func DeletePods(ctx context.Context, sess *session.Session, pods []model.PodRef, output string) error {
	return deleteRefs(ctx, sess, pods, func(d *deleter) { d.lines = !terminal.IsText(output) })
}

// DeleteWithNode deletes the pods of a runtime that is about to be removed, also those of the API server. Their objects
// stay, as after the loss of a machine.
func DeleteWithNode(ctx context.Context, sess *session.Session, pods []model.PodRef) error {
	return deleteRefs(ctx, sess, pods, func(d *deleter) { d.opts.ClusterPods = true })
}

func deleteRefs(ctx context.Context, sess *session.Session, pods []model.PodRef, set func(*deleter)) error {
	if len(pods) == 0 {
		return nil
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	d := newDeleter(sess, engine, plan.Options{})
	set(d)
	return d.delete(ctx, pods, stopsAtOnce)
}

// deleter deletes several pods concurrently, because most of the time is spent waiting for containers to stop.
type deleter struct {
	sess   *session.Session
	engine *runtime.Engine
	opts   executor.Options
	// lines is set if events are printed as JSON lines.
	lines bool
}

func newDeleter(sess *session.Session, engine *runtime.Engine, opts plan.Options) *deleter {
	return &deleter{sess: sess, engine: engine, opts: executor.Options{Options: opts}}
}

func (d *deleter) delete(ctx context.Context, pods []model.PodRef, limit int) error {
	if d.lines {
		d.opts.Report = view.EventLines(d.sess.IO)
	} else {
		progress := view.NewProgress(d.sess.IO, len(pods))
		defer progress.Stop()
		d.opts.Report = progress.Report
	}
	outcomes := selection.ForEach(pods, limit, func(ref model.PodRef) error { return d.one(ctx, ref) })
	var deleted []model.PodRef
	for i, err := range outcomes {
		if err == nil {
			deleted = append(deleted, pods[i])
		}
	}
	noteReturns(ctx, d.sess, deleted)
	return exit.Join(ctx, outcomes...)
}

func (d *deleter) one(ctx context.Context, ref model.PodRef) error {
	outcome, err := d.engine.Pods.Delete(ctx, ref, d.opts)
	if err != nil {
		return withSkipped(outcome, err)
	}
	if err := outcome.Err(); err != nil {
		return err
	}
	if d.lines {
		return nil
	}
	if len(outcome.Plan.Steps) == 0 {
		d.sess.IO.Print("pod %s not found", ref)
		return nil
	}
	d.sess.IO.Print("pod %s deleted", ref)
	return nil
}
