package lifecycle

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

type scaleOptions struct {
	applyOptions
	replicas int32
	dryRun   bool
}

// NewScale is `podctl scale`.
func NewScale(sess *session.Session) *cobra.Command {
	o := &scaleOptions{replicas: -1}
	cmd := &cobra.Command{
		Use:   "scale --replicas=N KIND/NAME...",
		Short: "Change how many pods a workload has",
		Long: "Change how many pods a Deployment, ReplicaSet or StatefulSet has, and make one pass. What its manifest says counts\n" +
			"again when that is applied. Of a workload in a source of the agent, the file says how many there are." +
			flags.ExitCodes("0 success", "1 error", "3 --wait: not there in time", "130 interrupted"),
		Example:           "  podctl scale --replicas=3 deployment/web\n  podctl scale --replicas=0 sts/db --wait",
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE:              func(cmd *cobra.Command, args []string) error { return runScale(cmd.Context(), sess, o, args) },
	}
	f := cmd.Flags()
	o.register(f)
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show the plan")
	f.IntVar(&o.parallel, "parallel", 4, "Number of pods to apply at the same time")
	addWaitFlag(cmd, &o.wait)
	return cmd
}

func (o *scaleOptions) register(f *pflag.FlagSet) {
	f.Int32Var(&o.replicas, "replicas", -1, "How many pods there shall be")
}

func runScale(ctx context.Context, sess *session.Session, o *scaleOptions, args []string) error {
	targets, err := selection.ParseTargets(args, sess.Flags.Namespace)
	switch {
	case err != nil:
		return err
	case o.replicas < 0:
		return exit.Usagef("scale needs --replicas, which is 0 or more")
	case len(targets.Workloads) == 0 || len(targets.Pods)+len(targets.Objects) > 0:
		return exit.Usagef("scale needs a Deployment, ReplicaSet or StatefulSet, for example deployment/web")
	}
	if err := refuseRuled(ctx, sess, targets.Workloads); err != nil {
		return err
	}
	var found selection.Found
	for _, key := range targets.Workloads {
		w, err := scaled(sess, key, o.replicas)
		if err != nil {
			return err
		}
		found.Workloads = append(found.Workloads, w)
	}
	if o.dryRun {
		return planFound(ctx, sess, &o.planOptions, found)
	}
	return o.applyWorkloads(ctx, sess, &found)
}

// planFound shows what would become of what was found.
func planFound(ctx context.Context, sess *session.Session, o *planOptions, found selection.Found) error {
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	observed := &selection.Observed{Found: found, Observer: engine, Engine: engine}
	if err := o.planWorkloads(ctx, sess, observed); err != nil {
		return err
	}
	return o.plan(ctx, sess, observed)
}

// scaled is a stored workload with another number of pods.
func scaled(sess *session.Session, key state.ObjectKey, replicas int32) (*podspec.Workload, error) {
	r, err := sess.Workloads().Get(key)
	if err != nil {
		return nil, err
	}
	w := *r.Workload
	switch {
	case w.Deployment != nil:
		w.Deployment = w.Deployment.DeepCopy()
		w.Deployment.Spec.Replicas = &replicas
	case w.ReplicaSet != nil:
		w.ReplicaSet = w.ReplicaSet.DeepCopy()
		w.ReplicaSet.Spec.Replicas = &replicas
	case w.StatefulSet != nil:
		w.StatefulSet = w.StatefulSet.DeepCopy()
		w.StatefulSet.Spec.Replicas = &replicas
	default:
		return nil, exit.Usagef("%s has no replicas", key)
	}
	sess.Loaded([]*podspec.Desired{w.Template})
	return &w, nil
}
