package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/workload"
)

// NewRollout is `podctl rollout`.
func NewRollout(sess *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout COMMAND",
		Short: "Look at the versions of a workload, go back to one, or restart its pods",
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
		Short: "Say how far a rollout is",
		Long: "Say how many pods of a workload have its newest version and are available, and what the others wait for. Nothing is\n" +
			"changed: to go on, apply again, or use apply --wait. With --watch the command waits, as kubectl does, for what the agent or\n" +
			"another command does, and runs the probes of the pods." +
			flags.ExitCodes("0 all pods are as they shall be", "1 error", "3 not yet", "130 interrupted"),
		Example:           "  podctl rollout status deployment/web\n  podctl rollout status deployment/web --watch --timeout 1m",
		Args:              oneWorkload,
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE:              func(cmd *cobra.Command, args []string) error { return runRolloutStatus(cmd.Context(), sess, o, args) },
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Wait until all pods are as they shall be, or a Job has ended")
	return cmd
}

func newRolloutHistory(sess *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "List the versions of a workload's template",
		Long: "List the versions of a workload's template that are kept (revisionHistoryLimit), the newest last. A version that\n" +
			"rollout restart has made says when." + flags.ExitCodes("0 success", "1 error", "130 interrupted"),
		Example:           "  podctl rollout history deployment/web",
		Args:              oneWorkload,
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE:              func(_ *cobra.Command, args []string) error { return runRolloutHistory(sess, args) },
	}
}

// oneWorkload allows KIND/NAME, or KIND NAME as kubectl also takes it.
func oneWorkload(cmd *cobra.Command, args []string) error {
	if len(args) == 2 && podspec.KindOfWord(args[0]).Name != "" {
		return nil
	}
	return cobra.ExactArgs(1)(cmd, args)
}

// recordNamed is the record of the workload that the arguments name, as oneWorkload allows.
func recordNamed(sess *session.Session, args []string) (*controller.Record, error) {
	key, ok := selection.WorkloadNamed(strings.Join(args, "/"), sess.Flags.Namespace)
	if !ok {
		return nil, exit.Usagef("rollout needs a workload, for example deployment/web")
	}
	r, err := sess.Workloads().Get(key)
	if err == nil {
		sess.Loaded([]*podspec.Desired{r.Workload.Template})
	}
	return r, err
}

func runRolloutStatus(ctx context.Context, sess *session.Session, o *rolloutStatusOptions, args []string) error {
	r, err := recordNamed(sess, args)
	if err != nil {
		return err
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	for said := ""; ; {
		if o.watch {
			probeAll(ctx, sess, engine, r.Key())
		}
		x, err := lookAt(ctx, sess, engine, r.Key())
		if err != nil && said != "" && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			// What was seen last is printed.
			return exit.With(exit.NotYet)
		}
		if err != nil {
			return err
		}
		doc := x.document()
		lines := append(view.WorkloadWaits(&doc), view.WorkloadOutcome(&doc))
		if text := strings.Join(lines, "\n"); text != said {
			for _, line := range lines {
				sess.IO.Print("%s", line)
			}
			said = text
		}
		switch {
		case x.Job == nil && x.Status.Complete(), x.Job != nil && workload.JobEnd(x.Job) != nil:
			return nil
		case !o.watch || !terminal.Sleep(ctx, lookEach):
			return exit.Join(ctx, exit.With(exit.NotYet), x.UnknownErr())
		}
	}
}

func runRolloutHistory(sess *session.Session, args []string) error {
	r, err := recordNamed(sess, args)
	if err != nil {
		return err
	}
	rows := make([][]string, 0, len(r.Revisions))
	for i := range r.Revisions {
		one := &r.Revisions[i]
		_, images := view.ContainersOf(&one.Template)
		rows = append(rows, []string{strconv.FormatInt(one.Number, 10), duration.HumanDuration(sess.IO.Now().Sub(one.At)), images, cmp.Or(one.Template.Annotations[podspec.AnnotationRestartedAt], terminal.NoValue)})
	}
	return terminal.Table(sess.IO.Out, []string{"REVISION", "AGE", "IMAGES", "RESTARTED AT"}, rows)
}
