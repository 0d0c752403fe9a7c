package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

func newRolloutRestart(sess *session.Session) *cobra.Command {
	o := &applyOptions{doing: "restarted"}
	cmd := &cobra.Command{
		Use:   "restart KIND/NAME...",
		Short: "Make the pods of workloads anew, as their rollout allows",
		Long: "Write the time into the template of Deployments, StatefulSets and DaemonSets, as kubectl does (" + podspec.AnnotationRestartedAt + "),\n" +
			"and make one pass. Each pod whose sandbox is older is made anew, with its init containers, when the rollout gives it the\n" +
			"new version: one after the other, as its strategy says. To restart containers in their sandbox, use podctl restart." +
			flags.ExitCodes("0 success", "1 error", "3 --wait: not there in time", "130 interrupted"),
		Example:           "  podctl rollout restart deployment/web --wait\n  podctl rollout restart sts/db ds/agent",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE:              func(cmd *cobra.Command, args []string) error { return runRolloutRestart(cmd.Context(), sess, o, args) },
	}
	registerRollout(cmd, o)
	return cmd
}

func runRolloutRestart(ctx context.Context, sess *session.Session, o *applyOptions, args []string) error {
	targets, err := selection.ParseTargets(args, sess.Flags.Namespace)
	switch {
	case err != nil:
		return err
	case len(targets.Workloads) == 0 || len(targets.Pods)+len(targets.Objects) > 0:
		return exit.Usagef("rollout restart needs a Deployment, StatefulSet or DaemonSet, for example deployment/web")
	}
	var found selection.Found
	var errs []error
	// With whole seconds, as kubectl writes them, a pod of the same second would not count as older.
	at := sess.IO.Now().UTC().Format(time.RFC3339Nano)
	for i, key := range targets.Workloads {
		if slices.Contains(targets.Workloads[:i], key) {
			continue
		}
		w, err := restartedAt(sess, key, at)
		found.Workloads = append(found.Workloads, w)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if o.dryRun {
		return planFound(ctx, sess, &o.planOptions, found)
	}
	return o.applyWorkloads(ctx, sess, &found)
}

// restartedAt is a stored workload whose pods are restarted at a time. It refuses what kubectl refuses (ObjectRestarter).
func restartedAt(sess *session.Session, key state.ObjectKey, at string) (*podspec.Workload, error) {
	r, err := sess.Workloads().Get(key)
	if err != nil {
		return nil, err
	}
	w := r.Workload
	switch {
	case w.Deployment != nil && w.Deployment.Spec.Paused:
		return nil, fmt.Errorf("%s: can't restart paused deployment: apply it with paused: false first", key)
	case w.Deployment == nil && w.StatefulSet == nil && w.DaemonSet == nil:
		return nil, fmt.Errorf("%s: restarting is not supported: only Deployments, StatefulSets and DaemonSets have rollouts", key)
	}
	w.Restart(at)
	sess.Loaded([]*podspec.Desired{w.Template})
	return w, nil
}
