package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/workload"
)

// NewRollout returns the command `podctl rollout`.
func NewRollout(sess *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout COMMAND",
		Short: "Manage the rollout of a workload",
		Args:  flags.Subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRolloutStatus(sess), newRolloutHistory(sess), newRolloutUndo(sess), newRolloutRestart(sess))
	return cmd
}

type rolloutStatusOptions struct{ watch bool }

func newRolloutStatus(sess *session.Session) *cobra.Command {
	o := &rolloutStatusOptions{}
	cmd := &cobra.Command{
		Use:   "status KIND/NAME",
		Short: "Show the status of a rollout",
		Long: "Show how many pods of a workload have the newest version and are available, " +
			"and what the others wait for. " +
			"Nothing is\nchanged: apply again to continue a rollout, or use apply --wait. " +
			"With --watch, the command runs the probes of the pods\nand waits, as kubectl does, " +
			"until the agent or another command has finished the rollout." +
			flags.ExitCodes(
				"0 all pods are up to date, or a Job has finished",
				"1 error",
				"3 not finished yet",
				"130 interrupted",
			),
		Example: "  podctl rollout status deployment/web\n" +
			"  podctl rollout status deployment/web --watch --timeout 1m",
		Args:              oneWorkload,
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE:              flags.Run(sess, o, runRolloutStatus),
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Wait until all pods are up to date, or a Job has finished")
	return cmd
}

func newRolloutHistory(sess *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "List the versions of a workload's template",
		Long: "List the versions of a workload's template, the newest last. " +
			"podctl keeps as many as revisionHistoryLimit allows. " +
			"For\na version from rollout restart, the time of the restart is shown." +
			flags.ExitCodes("0 success", "1 error", "130 interrupted"),
		Example:           "  podctl rollout history deployment/web",
		Args:              oneWorkload,
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE:              func(_ *cobra.Command, args []string) error { return runRolloutHistory(sess, args) },
	}
}

// oneWorkload accepts KIND/NAME, or KIND NAME as kubectl does.
func oneWorkload(cmd *cobra.Command, args []string) error {
	if len(args) == 2 && podspec.KindOfWord(args[0]).Name != "" {
		return nil
	}
	return flags.NeedsUpTo(1, "one workload, for example deployment/web")(cmd, args)
}

// recordNamed returns the record of the workload in the arguments (see oneWorkload). command is the kubectl command for
// a workload of the API server.
func recordNamed(sess *session.Session, args []string, command string) (*controller.Record, error) {
	key, ok := selection.WorkloadNamed(strings.Join(args, "/"), sess.Flags.Namespace)
	if !ok {
		return nil, exit.Usagef("rollout needs a workload, for example deployment/web")
	}
	r, err := sess.Workloads().Get(key)
	if err = withCluster(sess, key, err, command); err == nil {
		sess.Loaded([]*podspec.Desired{r.Workload.Template})
	}
	return r, err
}

func runRolloutStatus(ctx context.Context, sess *session.Session, o *rolloutStatusOptions, args []string) error {
	r, err := recordNamed(sess, args, "rollout status")
	if err != nil {
		return err
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	for printed := ""; ; {
		if o.watch {
			probeAll(ctx, sess, engine, r.Key())
		}
		x, err := observeWorkload(ctx, sess, engine, r.Key())
		if err != nil && printed != "" && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			// The last observed state was already printed.
			return exit.With(exit.NotYet)
		}
		if err != nil {
			return err
		}
		doc := x.document()
		lines := append(view.WorkloadWaits(&doc), view.WorkloadOutcome(&doc))
		if text := strings.Join(lines, "\n"); text != printed {
			for _, line := range lines {
				sess.IO.Print("%s", line)
			}
			printed = text
		}
		switch {
		case x.Job == nil && x.Status.Complete(), x.Job != nil && workload.JobEnd(x.Job) != nil:
			return nil
		case !o.watch || !terminal.Sleep(ctx, recheckInterval):
			return exit.Join(ctx, exit.With(exit.NotYet), x.UnknownErr())
		}
	}
}

func runRolloutHistory(sess *session.Session, args []string) error {
	r, err := recordNamed(sess, args, "rollout history")
	if err != nil {
		return err
	}
	rows := make([][]string, 0, len(r.Revisions))
	for i := range r.Revisions {
		one := &r.Revisions[i]
		_, images := view.ContainersOf(&one.Template)
		rows = append(rows, []string{
			strconv.FormatInt(one.Number, 10),
			duration.HumanDuration(sess.IO.Now().Sub(one.At)),
			images,
			cmp.Or(one.Template.Annotations[podspec.AnnotationRestartedAt], table.NoValue),
		})
	}
	return table.Write(sess.IO.Out, []string{"REVISION", "AGE", "IMAGES", "RESTARTED AT"}, rows)
}

// NewScale returns the command `podctl scale`.
func NewScale(sess *session.Session) *cobra.Command {
	o, replicas := &applyOptions{}, int32(0)
	cmd := &cobra.Command{
		Use:   "scale --replicas=N KIND/NAME...",
		Short: "Set the number of pods of a workload",
		Long: "Set the number of pods of a Deployment, ReplicaSet or StatefulSet, and run one pass. " +
			"The manifest takes effect again\nwhen you apply it. " +
			"podctl refuses to scale a workload from a source of the agent: change its file instead." +
			flags.ExitCodes("0 success", "1 error", "3 --wait: not reached in time", "130 interrupted"),
		Example:           "  podctl scale --replicas=3 deployment/web\n  podctl scale --replicas=0 sts/db --wait",
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			if replicas < 0 {
				return exit.Usagef("scale needs --replicas with a number of 0 or more")
			}
			o.kubectl = fmt.Sprintf("scale --replicas=%d", replicas)
			keys, err := namedWorkloads(sess, args,
				"scale needs a Deployment, ReplicaSet or StatefulSet, for example deployment/web")
			if err == nil {
				err = refuseAgentOwned(cmd.Context(), sess, keys)
			}
			if err != nil {
				return err
			}
			return o.change(cmd.Context(), sess, keys, func(r *controller.Record) error {
				return scale(r.Workload, r.Key(), replicas)
			})
		},
	}
	cmd.Flags().Int32Var(&replicas, "replicas", -1, "Number of pods")
	o.registerChange(cmd)
	return cmd
}

// scale sets the number of pods of a workload.
func scale(w *podspec.Workload, key state.ObjectKey, replicas int32) error {
	switch {
	case w.Deployment != nil:
		w.Deployment.Spec.Replicas = &replicas
	case w.ReplicaSet != nil:
		w.ReplicaSet.Spec.Replicas = &replicas
	case w.StatefulSet != nil:
		w.StatefulSet.Spec.Replicas = &replicas
	default:
		return exit.Usagef("%s cannot be scaled: it has no replicas field", key)
	}
	return nil
}

func newRolloutUndo(sess *session.Session) *cobra.Command {
	o, revision := &applyOptions{}, int64(0)
	cmd := &cobra.Command{
		Use:   "undo KIND/NAME",
		Short: "Roll back a workload to an earlier version",
		Long: "Roll back the template of a workload to the previous version, or to that of --to-revision, " +
			"and run one pass. " +
			"The\nmanifest takes effect again when you apply it. " +
			"podctl refuses to roll back a workload from a source of the agent:\n" +
			"change its file instead." +
			flags.ExitCodes("0 success", "1 error", "3 --wait: not reached in time", "130 interrupted"),
		Example: "  podctl rollout undo deployment/web\n" +
			"  podctl rollout undo deployment/web --to-revision 2 --wait",
		Args:              oneWorkload,
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kubectl = "rollout undo"
			if revision != 0 {
				o.kubectl += fmt.Sprintf(" --to-revision=%d", revision)
			}
			r, err := recordNamed(sess, args, o.kubectl)
			if err != nil {
				return err
			}
			keys := []state.ObjectKey{r.Key()}
			if err := refuseAgentOwned(cmd.Context(), sess, keys); err != nil {
				return err
			}
			return o.change(cmd.Context(), sess, keys, func(r *controller.Record) error {
				return rollBack(r, revision)
			})
		},
	}
	cmd.Flags().Int64Var(&revision, "to-revision", 0, "Version to roll back to (0: the previous one)")
	o.registerChange(cmd)
	return cmd
}

// registerChange defines the flags of a command that changes stored workloads.
func (o *applyOptions) registerChange(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show the plan")
	f.IntVar(&o.parallel, "parallel", 4, "Number of pods to apply at the same time")
	addWaitFlag(cmd, &o.wait)
}

// rollBack sets an earlier version of the template. Revision 0 is the previous one.
func rollBack(r *controller.Record, revision int64) error {
	if r.Workload.Job != nil {
		return exit.Usagef("%s is a Job: its template does not change", r.Key())
	}
	last := len(r.Revisions) - 1
	for i := last - 1; i >= 0; i-- {
		if one := &r.Revisions[i]; revision == 0 || one.Number == revision {
			template, _ := r.Workload.PodTemplate()
			*template = *one.Template.DeepCopy()
			r.Workload.Template = one.Pod
			return nil
		}
	}
	if revision == 0 {
		return fmt.Errorf("%s has no previous version", r.Key())
	}
	return fmt.Errorf("%s has no earlier version %d (`podctl rollout history` lists the stored versions)",
		r.Key(), revision)
}

func newRolloutRestart(sess *session.Session) *cobra.Command {
	o := &applyOptions{doing: "restarted", kubectl: "rollout restart"}
	cmd := &cobra.Command{
		Use:   "restart KIND/NAME...",
		Short: "Restart the pods of a workload, following its rollout strategy",
		Long: "Write the time into the template of Deployments, StatefulSets and DaemonSets, as kubectl does\n" +
			"(" + podspec.AnnotationRestartedAt + "), and run one pass. " +
			"The rollout then recreates pods whose sandbox is older,\nwith their init containers, " +
			"as the strategy allows. " +
			"To restart containers in their sandbox, use podctl restart." +
			flags.ExitCodes("0 success", "1 error", "3 --wait: not reached in time", "130 interrupted"),
		Example:           "  podctl rollout restart deployment/web --wait\n  podctl rollout restart sts/db ds/agent",
		Args:              flags.Needs("a Deployment, StatefulSet or DaemonSet, for example deployment/web"),
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, err := namedWorkloads(sess, args,
				"rollout restart needs a Deployment, StatefulSet or DaemonSet, for example deployment/web")
			if err != nil {
				return err
			}
			// kubectl writes whole seconds. A pod created in the same second would then not count as older.
			at := sess.IO.Now().UTC().Format(time.RFC3339Nano)
			return o.change(cmd.Context(), sess, keys, func(r *controller.Record) error {
				return restartAt(r.Workload, r.Key(), at)
			})
		},
	}
	o.registerChange(cmd)
	return cmd
}

// restartAt sets the restart time of a workload. It refuses the same workloads as kubectl (ObjectRestarter).
func restartAt(w *podspec.Workload, key state.ObjectKey, at string) error {
	switch {
	case w.Deployment != nil && w.Deployment.Spec.Paused:
		return fmt.Errorf("%s: can't restart paused deployment: apply it with paused: false first", key)
	case w.Deployment == nil && w.StatefulSet == nil && w.DaemonSet == nil:
		return fmt.Errorf(
			"%s: restarting is not supported: only Deployments, StatefulSets and DaemonSets have rollouts", key)
	}
	w.Restart(at)
	return nil
}

// namedWorkloads returns the workloads in the arguments. Other arguments are an error.
func namedWorkloads(sess *session.Session, args []string, usage string) ([]state.ObjectKey, error) {
	targets, err := selection.ParseTargets(args, sess.Flags.Namespace)
	if err == nil && (len(targets.Workloads) == 0 || len(targets.Pods)+len(targets.Objects) > 0) {
		err = exit.Usagef("%s", usage)
	}
	return targets.Workloads, err
}

// change changes stored workloads, each once, and makes a pass. With --dry-run it shows the plan.
func (o *applyOptions) change(
	ctx context.Context, sess *session.Session, keys []state.ObjectKey, change func(*controller.Record) error,
) error {
	var found selection.Found
	var errs []error
	for i, key := range keys {
		if slices.Contains(keys[:i], key) {
			continue
		}
		r, err := sess.Workloads().Get(key)
		if err == nil {
			err = change(r)
		}
		if err = withCluster(sess, key, err, o.kubectl); err == nil {
			sess.Loaded([]*podspec.Desired{r.Workload.Template})
			found.Workloads = append(found.Workloads, r.Workload)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if !o.dryRun {
		return o.applyWorkloads(ctx, sess, &found)
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	observed := &selection.Observed{Found: found, Observer: engine, Engine: engine}
	if err := o.planWorkloads(ctx, sess, observed); err != nil {
		return err
	}
	return o.planOptions.plan(ctx, sess, observed)
}
